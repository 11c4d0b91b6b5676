"""What requests say: ids, retention, tool calls."""

from typing import Any

import pytest

from mcptasks_crds.task import Retention
from mcptasks_service.dialects import asks
from mcptasks_service.errors import InvalidParams


@pytest.mark.fault("P19")
@pytest.mark.parametrize(
    ("value", "milliseconds"), [(0, 0), (60_000, 60_000), (0.2, 1), (1e3, 1000), (2**53 - 1, 2**53 - 1)]
)
def test_retention_takes_any_number_of_milliseconds_rounded_up(value: float, milliseconds: int) -> None:
    assert asks.retention("ttl", {"ttl": value}, "Creation") == Retention(after="Creation", milliseconds=milliseconds)


@pytest.mark.fault("P19")
def test_null_is_unlimited_and_absence_is_the_default() -> None:
    assert asks.retention("keepAlive", {"keepAlive": None}, "Finish") == "unlimited"
    assert asks.retention("keepAlive", {}, "Finish") == "default"


@pytest.mark.fault("P19")
@pytest.mark.parametrize(
    "value", [-1, -0.5, 2**53, 10**18, 10**400, float("nan"), float("inf"), "60000", True, [1], {"ms": 1}]
)
def test_any_other_retention_is_refused_with_what_is_accepted(value: Any) -> None:
    with pytest.raises(InvalidParams, match=r"Invalid keepAlive: .*; it must be a number of milliseconds from 0"):
        asks.retention("keepAlive", {"keepAlive": value}, "Finish")


def test_a_refusal_names_the_value_but_never_all_of_a_large_one() -> None:
    with pytest.raises(InvalidParams, match="-5") as refused:
        asks.retention("ttl", {"ttl": -5}, "Creation")
    with pytest.raises(InvalidParams) as refused:
        asks.retention("ttl", {"ttl": "x" * 10_000}, "Creation")
    assert len(str(refused.value)) < 400


@pytest.mark.parametrize("value", ["a", "ü/☃ \n", "x" * 1024])
def test_an_id_is_any_text(value: str) -> None:
    assert asks.task_id({"taskId": value}) == value


@pytest.mark.parametrize("value", ["", "x" * 1025, "x" * 10_240, "\ud800", None, 7, ["a"]])
def test_what_is_no_id_is_refused_briefly(value: Any) -> None:
    with pytest.raises(InvalidParams, match="Invalid taskId") as refused:
        asks.task_id({"taskId": value})
    assert len(str(refused.value).encode()) < 300


def test_a_call_without_arguments_has_none() -> None:
    assert asks.tool_call({"name": "build"}) == asks.ToolCall("build", {})
    assert asks.tool_call({"name": "build", "arguments": None}).arguments == {}


@pytest.mark.parametrize("params", [{}, {"name": ""}, {"name": 3}, {"name": "build", "arguments": ["x"]}])
def test_a_call_that_is_none_is_refused(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidParams, match=r"Invalid (name|arguments)"):
        asks.tool_call(params)
