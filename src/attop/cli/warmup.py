"""``attop warmup``: compile the solver ahead."""

from __future__ import annotations

import typer


def warmup() -> None:
    """Compile the solver and keep the result on disk, for images and continuous integration."""
    from attop._compilation import warmup as compile_all

    typer.echo(f"The solver is compiled, in {compile_all():.1f} s.")
