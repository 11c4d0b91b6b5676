"""What ``mcptasks dev`` prints: colours on a terminal, plain lines elsewhere."""

import re
import sys
import time
from collections.abc import Callable

from rich.console import Console
from rich.markup import escape

from mcptasks_local.dev.feed import TOOL_WIDTH, Line, clean

LOUD = re.compile(r"^[\d:, -]+(W|E|C|WARNING|ERROR|CRITICAL)\b")
"""A log line of a child that a person should see: a time, then a level."""
RAISED = re.compile(r"^[\w.]+(Error|Exception|Group|Exit)\b")
"""The last line of a traceback: the one that says what it was."""


class Screen:
    """Standard output for what is said, standard error for what went wrong."""

    def __init__(self, *, quiet: bool = False, verbose: bool = False, clock: Callable[[], float] = time.time) -> None:
        self._out = Console(soft_wrap=True, highlight=False)
        self._err = Console(soft_wrap=True, highlight=False, stderr=True)
        self._quiet, self._verbose, self._clock = quiet, verbose, clock
        self._traceback: set[str] = set()

    def say(self, markup: str = "") -> None:
        """Print rich markup."""
        self._out.print(markup)
        sys.stdout.flush()

    def fail(self, text: str) -> None:
        """Print an error."""
        for line in text.splitlines():
            self._err.print(f"[bold red]mcptasks dev:[/] {escape(line)}")

    def event(self, text: str, style: str = "yellow") -> None:
        """Something that happened to the dev server itself."""
        self.say(f"[dim]{self._now()}[/]  [{style}]{escape(text)}[/]")

    def line(self, line: Line) -> None:
        """A change of a task or tool."""
        if self._quiet:
            return
        self.say(
            f"[dim]{self._now()}[/]  {escape(line.tool):<{TOOL_WIDTH}} [dim]{line.task:<10}[/]  "
            f"[{line.style or 'default'}]{line.word:<10}[/]  {escape(line.note)}".rstrip()
        )

    def child(self, name: str, text: str) -> None:
        """A line that a child logged: all of them if verbose, else warnings, errors, and what a traceback ends with."""
        if text.startswith("Traceback ("):
            self._traceback.add(name)
        ends_traceback = name in self._traceback and RAISED.match(text) is not None
        if ends_traceback:
            self._traceback.discard(name)
        if (text and self._verbose) or ends_traceback or LOUD.search(text):
            self.say(f"[dim]{self._now()}[/]  [magenta]{name}[/] {escape(clean(text, 1000))}")

    def _now(self) -> str:
        return time.strftime("%H:%M:%S", time.localtime(self._clock()))
