"""What the library says about parameters, said about options."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console

#: Options, and the argument DATA, that are not named like their parameter.
_OPTIONS = {
    "path": "DATA",
    "scoring": "--metric",
    "pos_label": "--positive",
    "fpr": "--guarantee",
    "n_components": "--components",
    "cv": "--folds",
}
_PARAMETER = re.compile(r"[Tt]he '(\w+)' parameter of (?:the scorer '[^']*'|[\w.]+)")
#: Names that stand in advice of the library as they are written in Python.
_NAME = re.compile(r"\b(max_time|n_components)\b")
#: What only a program can pass.
_FOR_PROGRAMS = re.compile(
    r",? (?:or )?a callable, a Kernel or a ForestKernel| or a Surrogate| or None|None or "
)


def option_of(parameter: str) -> str:
    """The option that sets a parameter."""
    return _OPTIONS.get(parameter, f"--{parameter.replace('_', '-')}")


def in_options(message: object) -> str:
    """A message of the library with options in place of its parameters."""
    text = _PARAMETER.sub(lambda found: option_of(found[1]), str(message))
    text = _NAME.sub(lambda found: option_of(found[1]), text)
    return _FOR_PROGRAMS.sub("", text)


@contextmanager
def told(console: Console) -> Iterator[None]:
    """Turn errors of values into messages, and warnings into lines on `console`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        except ValueError as error:
            raise typer.BadParameter(in_options(error)) from None
        finally:
            for message in dict.fromkeys(in_options(warning.message) for warning in caught):
                console.print(f"Warning: {message}", markup=False, soft_wrap=True, style="yellow")
