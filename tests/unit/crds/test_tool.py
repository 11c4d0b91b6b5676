"""MCPTool."""

from typing import Any

import pytest

from mcptasks_crds.tool import ToolSpec, tool_container

JOB: dict[str, Any] = {"template": {}}


@pytest.mark.parametrize(
    ("template", "name"),
    [
        ({}, None),
        ({"spec": {}}, None),
        ({"spec": {"containers": []}}, None),
        ({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}, "a"),
        ({"spec": {"containers": [{"name": "proxy"}, {"name": "tool"}]}}, "tool"),
        ({"spec": {"containers": [{}]}}, None),
    ],
)
def test_the_container_named_tool_else_the_first_runs_the_call(template: dict[str, Any], name: str | None) -> None:
    container = tool_container(template)
    assert (container or {}).get("name") == name


@pytest.mark.fault("T8")
def test_every_time_out_has_a_default_that_can_be_set() -> None:
    spec = ToolSpec.model_validate({"job": JOB})
    assert (spec.timeouts.start, spec.timeouts.run, spec.poll_interval) == ("5m", "24h", "1s")
    assert ToolSpec.model_validate({"job": JOB, "timeouts": {"run": "10s"}}).timeouts.run == "10s"


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"job": JOB, "timeouts": {"run": "soon"}},
        {"job": JOB, "rateLimit": {"perOwner": "60/fortnight"}},
        {"job": JOB, "concurrency": {"total": 0}},
        {"job": JOB, "retries": {"limit": 11}},
        {"job": JOB, "taskSupport": "maybe"},
        {"job": {"template": {}, "logLimit": 2 * 1024 * 1024}},
    ],
)
def test_a_spec_that_says_nonsense_is_refused(spec: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        ToolSpec.model_validate(spec)
