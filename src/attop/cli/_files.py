"""Where commands write: told before the work if they cannot, never half a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

ForceOption = Annotated[bool, typer.Option("--force", help="Replace files that are there already.")]


def check_output(path: Path, option: str, *, force: bool) -> None:
    """Make the folder of a file to be written, and see that the file can be.

    Called before the work, so that nobody waits for an error.

    Parameters
    ----------
    path : Path
        The file.
    option : str
        The option that named it.
    force : bool
        Whether a file that is there may be replaced.

    Raises
    ------
    typer.BadParameter
        If the file is there and must not be replaced, or is a folder.
    OSError
        If its folder cannot be made or written to.
    """
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name a file.", param_hint=option)
    if path.exists() and not force:
        raise typer.BadParameter(
            f"{path} exists already. Name another file, or replace it with --force.",
            param_hint=option,
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as error:  # of a name that nobody has given
        raise OSError(
            error.errno, f"cannot be written to ({error.strerror})", str(path.parent)
        ) from None


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """A temporary file beside `path` that takes its name at the end, or goes at an error."""
    temporary = path.with_name(f"{path.name}.tmp")
    try:
        yield temporary
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
