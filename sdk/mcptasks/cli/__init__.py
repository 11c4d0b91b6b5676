"""The ``mcptasks`` command. What a command needs is imported by that command, so that none waits for another's."""

import sys


def main() -> None:
    """Entry point."""
    try:
        from mcptasks.cli.app import app
    except ModuleNotFoundError as error:
        sys.exit(f"mcptasks: {error.name} is not installed; the command needs: pip install 'mcptasks[all]'")
    app(prog_name="mcptasks")
