"""How a tool talks to mcptasks from inside its Job, in standard library alone.

The pod finds three variables: MCPTASKS_URL (the worker API), MCPTASKS_TOKEN_FILE (who it is; the token is renewed, so
it is read each time) and MCPTASKS_ARGUMENTS (a file with the call's arguments).
"""

import contextlib
import itertools
import json
import os
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

PATIENCE = 600.0
"""Seconds to keep trying to hand in a result: a service that restarts, or is away for minutes, costs no work."""


def arguments() -> dict[str, Any]:
    """The arguments of the call."""
    values: dict[str, Any] = json.loads(Path(os.environ["MCPTASKS_ARGUMENTS"]).read_text())
    return values


def progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Say how far the work is; whoever polls or waits sees it. A report that gets lost is no reason to stop."""
    with contextlib.suppress(OSError):
        _send("POST", "progress", {"progress": done, "total": total, "message": message})


def result(text: str, structured: dict[str, Any] | None = None, *, is_error: bool = False) -> None:
    """Report the tool's result. When this returns it is stored, and the task is completed.

    Raises:
        urllib.error.HTTPError: it was refused, for example since the task was cancelled.
    """
    body: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": is_error}
    if structured is not None:
        body["structuredContent"] = structured
    give_up = time.monotonic() + PATIENCE
    for attempt in itertools.count():
        try:
            _send("PUT", "result", body)
        except OSError as error:  # HTTPError is one too
            refused = isinstance(error, urllib.error.HTTPError) and error.code < 500
            if refused or time.monotonic() > give_up:
                raise
            time.sleep(min(0.2 * 2**attempt, 10))  # sent again it is still the same result
        else:
            return


def _send(method: str, what: str, body: dict[str, Any]) -> None:
    token = Path(os.environ["MCPTASKS_TOKEN_FILE"]).read_text().strip()
    request = urllib.request.Request(
        f"{os.environ['MCPTASKS_URL']}/worker/v1/{what}",
        json.dumps(body).encode(),
        {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=30):
        pass
