from typing import Any

import pytest

from mcptasks_local.dev.feed import Feed, Line, clean, duration, readiness


def task(status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = {
        "kind": "MCPTask",
        "metadata": {"name": "t-0123456789abcdef", "uid": "u1", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"taskId": "id", "request": {"name": "build", "arguments": '{"path": "src"}'}, **spec},
    }
    return body if status is None else {**body, "status": status}


def tool(status: str, observed: int = 1, *, message: str = "") -> dict[str, Any]:
    condition = {"type": "Ready", "status": status, "reason": "Valid", "message": message}
    return {
        "kind": "MCPTool",
        "metadata": {"name": "build", "uid": "u2", "generation": 1},
        "status": {"conditions": [{**condition, "observedGeneration": observed}]},
    }


def told(*states: dict[str, Any]) -> list[Line | None]:
    feed = Feed()
    return [feed.told("MODIFIED", state, 0.0) for state in states]


def note(state: dict[str, Any]) -> str:
    [line] = told(state)
    assert line is not None
    return line.note


def test_a_new_task_says_its_tool_a_short_name_and_what_was_asked() -> None:
    [line] = told(task())
    assert line == Line("build", "t-01234567", "submitted", '{"path": "src"}', "dim")


def test_only_news_is_told() -> None:
    working = task({"state": "working", "lastUpdatedAt": "2026-01-01T00:00:01Z"})
    again = task({"state": "working", "lastUpdatedAt": "2026-01-01T00:00:02Z"})
    first, second = told(working, again)
    assert first is not None
    assert first.word == "working"
    assert second is None


def test_what_was_there_before_is_no_news() -> None:
    feed = Feed()
    feed.seen(task())
    assert feed.told("ADDED", task(), 0.0) is None


def test_progress_is_told_in_its_own_words() -> None:
    assert note(task({"state": "working", "progress": {"progress": 3, "total": 10, "text": "3/10 compiling"}})) == (
        "3/10 compiling"
    )
    assert note(task({"state": "working", "progress": {"progress": 0.5}})) == "0.5"


def test_an_end_says_why_and_after_how_long() -> None:
    ended = {"state": "failed", "reason": "OutOfMemory", "startedAt": "2026-01-01T00:00:01Z"}
    assert note(task({**ended, "finishedAt": "2026-01-01T00:00:03.5Z", "error": {"message": "killed"}})) == (
        "OutOfMemory after 2.5 s · killed"
    )
    assert note(task({"state": "unknown", "reason": "Restored"})) == "Restored"


def test_a_task_that_never_started_counts_from_its_creation() -> None:
    ended = {"state": "cancelled", "reason": "Cancelled", "finishedAt": "2026-01-01T00:01:05Z"}
    assert note(task(ended)) == "Cancelled after 1 min 5 s"


def test_a_queued_task_says_what_it_waits_for() -> None:
    queued = {"type": "Queued", "status": "True", "reason": "ConcurrencyLimit", "message": "2 of 2 run"}
    assert note(task({"state": "submitted", "conditions": [queued]})) == "ConcurrencyLimit 2 of 2 run"


def test_a_cancel_and_another_attempt_are_told() -> None:
    assert note(task({"state": "working"}, cancel={"reason": "slow"})) == "is being cancelled"
    assert note(task({"state": "working", "attempt": 2})) == "attempt 2"


def test_arguments_that_are_no_json_or_none_are_left_out() -> None:
    assert note(task(request={"name": "build", "arguments": "{"})) == ""
    assert note(task(request={"name": "build", "arguments": "{}"})) == ""


@pytest.mark.parametrize(("now", "word"), [(0.0, "deleted"), (2e9, "expired")])
def test_a_task_that_goes_has_expired_or_was_deleted(now: float, word: str) -> None:
    line = Feed().told("DELETED", task({"state": "completed", "expiresAt": "2026-01-01T00:00:00Z"}), now)
    assert line is not None
    assert line.word == word


def test_tools_are_told_of() -> None:
    ready, broken = told(tool("True"), tool("False", message="no\nsuch image"))
    assert ready == Line("build", "", "tool ready", style="green")
    assert broken == Line("build", "", "tool not ready", "Valid: no such image", "red")
    assert Feed().told("DELETED", tool("True"), 0.0) == Line("build", "", "tool deleted", style="yellow")


def test_a_tool_nobody_has_looked_at_is_neither_ready_nor_not() -> None:
    assert told(tool("Unknown")) == [None]
    assert readiness(tool("True", observed=0)) is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0 s"), (0.44, "0.4 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (7260, "2 h 1 min")],
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_what_a_tool_writes_can_not_touch_the_terminal() -> None:
    assert clean("\x1b[2Jgone\r\nback \x9b1m‮") == "[2Jgone back 1m?"
    assert clean("x" * 500, 10) == "xxxxxxxxx…"
