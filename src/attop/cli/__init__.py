"""The ``attop`` command."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 for success, 2 for a user's error, 130 for Ctrl-C.

    Parameters
    ----------
    arguments : sequence of str, default=None
        The words after ``attop``; those of the process by default.
    """
    try:
        # Imported here so that Ctrl-C while the commands load ends as quietly as later.
        from attop.cli.app import run

        run(arguments)
    except (KeyboardInterrupt, SystemExit) as end:
        if isinstance(end, SystemExit) and end.code != 130:  # which is Ctrl-C inside a command
            raise
        print("Interrupted.", file=sys.stderr)
        sys.exit(130)
