"""One task in the words of each dialect, and how often to ask for it."""

import pytest

from mcptasks_crds.lifecycle import State
from mcptasks_crds.task import Retention
from mcptasks_crds.tool import MCPTool
from mcptasks_service.dialects import core, extension, pace, sep1686
from mcptasks_service.dialects.tools import listed
from mcptasks_service.stored import Raw

from .records import CREATED, result, task

END = CREATED + 120


@pytest.mark.parametrize(
    ("state", "in_a", "later"),
    [
        (State.SUBMITTED, "submitted", "working"),
        (State.WORKING, "working", "working"),
        (State.INPUT_REQUIRED, "input_required", "input_required"),
        (State.COMPLETED, "completed", "completed"),
        (State.FAILED, "failed", "failed"),
        (State.CANCELLED, "cancelled", "cancelled"),
        (State.UNKNOWN, "unknown", "failed"),
    ],
)
def test_each_state_has_its_word(state: State, in_a: str, later: str) -> None:
    assert sep1686.words(task(state), 500)["status"] == in_a
    assert core.words(task(state), 500)["status"] == extension.words(task(state), 500)["status"] == later


@pytest.mark.req("R-3.5")
@pytest.mark.fault("P10")
def test_a_result_that_is_an_error_fails_a_task_of_2025_11_25_alone() -> None:
    ended = task(State.COMPLETED, result=result(is_error=True))
    assert sep1686.words(ended, 1)["status"] == extension.words(ended, 1)["status"] == "completed"
    assert core.words(ended, 1)["status"] == "failed"


@pytest.mark.req("R-2.1", "R-5.1")
def test_keep_alive_shows_as_null_ttl_until_the_end_and_then_counts_from_creation() -> None:
    kept = Retention(after="Finish", milliseconds=60_000)
    assert sep1686.words(task(retention=kept), 1)["keepAlive"] == 60_000
    assert core.words(task(retention=kept), 1)["ttl"] is None
    ended = task(State.COMPLETED, retention=kept, finished=END)
    assert core.words(ended, 1)["ttl"] == extension.words(ended, 1)["ttlMs"] == 180_000


@pytest.mark.fault("P19")
def test_unlimited_retention_is_written_as_null_in_every_dialect() -> None:
    assert sep1686.words(task(), 1)["keepAlive"] is None
    assert core.words(task(), 1)["ttl"] is None
    assert extension.words(task(), 1)["ttlMs"] is None


def test_a_ttl_shows_in_sep_1686_as_what_is_left_at_the_end() -> None:
    ended = task(State.COMPLETED, retention=Retention(after="Creation", milliseconds=300_000), finished=END)
    assert sep1686.words(ended, 1)["keepAlive"] == 180_000


@pytest.mark.req("R-8.2")
def test_a_failed_task_says_why() -> None:
    failed = task(State.FAILED, reason="ImagePull", message="no such image", finished=END)
    assert sep1686.words(failed, 1)["error"] == "no such image"
    assert core.words(failed, 1)["statusMessage"] == "no such image"
    detailed = extension.detailed(failed, 1, None)
    assert detailed["error"] == {
        "code": -32603,
        "message": "no such image",
        "data": {"taskId": "abc", "status": "failed", "reason": "ImagePull"},
    }
    own = task(State.FAILED, error={"code": -32000, "message": "its own"})
    assert sep1686.words(own, 1)["error"] == "its own"
    assert extension.detailed(own, 1, None)["error"] == {"code": -32000, "message": "its own"}


def test_a_task_that_did_not_fail_has_no_error() -> None:
    assert "error" not in sep1686.words(task(State.COMPLETED, message="done"), 1)
    assert "error" not in extension.detailed(task(State.CANCELLED), 1, None)


def test_a_completed_task_of_the_extension_carries_its_result_as_stored() -> None:
    assert extension.detailed(task(State.COMPLETED, result=result()), 1, b'{"x":1.50}')["result"] == Raw(b'{"x":1.50}')


def test_progress_is_what_a_running_task_says() -> None:
    running = task(progress={"progress": 3, "text": "3/10 compiling"}, updated=CREATED + 5)
    words = core.words(running, 500)
    assert words["statusMessage"] == "3/10 compiling"
    assert (words["createdAt"], words["lastUpdatedAt"]) == ("2026-07-25T17:20:00.000Z", "2026-07-25T17:20:05.000Z")
    assert words["pollInterval"] == extension.words(running, 500)["pollIntervalMs"] == 500


@pytest.mark.req("R-5.4")
@pytest.mark.parametrize(
    ("base", "age", "expected"),
    [
        (1000, 0, 1000),
        (1000, 20_000, 1000),
        (500, 30_000, 1500),
        (1000, 60_000, 3000),
        (1000, 10**9, 10_000),
        (60_000, 10**9, 60_000),
    ],
)
def test_the_poll_interval_grows_with_the_age(base: int, age: float, expected: int) -> None:
    assert pace.interval(base, age) == expected


def tool(**spec: object) -> MCPTool:
    return MCPTool.model_validate({"metadata": {"name": "build"}, "spec": {"job": {"template": {}}, **spec}})


def test_tools_are_listed_with_what_they_have() -> None:
    full = tool(
        title="Build",
        description="Builds",
        inputSchema={"x": 1},
        outputSchema={"type": "object"},
        annotations={"readOnlyHint": True},
    )
    assert listed([full], task_support=False) == [
        {
            "name": "build",
            "title": "Build",
            "description": "Builds",
            "inputSchema": {"type": "object", "x": 1},
            "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": True},
        }
    ]
    assert listed([tool()], task_support=True)[0]["execution"] == {"taskSupport": "optional"}


def test_tasks_can_be_listed_only_where_callers_are_told_apart() -> None:
    assert core.capability(listable=True) == {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
    assert "list" not in core.capability(listable=False)
