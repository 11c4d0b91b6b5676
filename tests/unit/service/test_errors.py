"""The words of a refusal."""

import pytest

from mcptasks_crds.lifecycle import State
from mcptasks_service.errors import (
    ArgumentsInvalid,
    InvalidParams,
    ResultNotReady,
    ServiceError,
    TaskEnded,
    TaskExists,
    TaskNotFound,
    ToolNotFound,
    shown,
)


@pytest.mark.req("R-8.1")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (TaskNotFound("a"), "Task not found: 'a' is unknown or has expired"),
        (TaskExists("a"), "Task already exists: 'a'; poll it with tasks/get, or choose another taskId"),
        (ResultNotReady("a", State.WORKING), "Task 'a' is working; it has a result only when it is completed"),
        (TaskEnded("a", State.FAILED), "Task 'a' has already ended: it is failed"),
        (ToolNotFound("a"), "Unknown tool: 'a'; see tools/list"),
    ],
)
def test_every_refusal_names_its_cause(error: ServiceError, words: str) -> None:
    assert str(error) == words


def test_arguments_are_parameters() -> None:
    assert issubclass(ArgumentsInvalid, InvalidParams)


@pytest.mark.parametrize("value", ["x" * 10_240, "\0\n\u2028", "\ud800", "日本"])
def test_a_client_s_text_comes_back_short_and_printable(value: str) -> None:
    text = shown(value)
    assert len(text) <= 90
    assert text.isprintable()
    text.encode()
