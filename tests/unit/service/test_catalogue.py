"""The tools on offer."""

import asyncio
from typing import Any

import pytest

from mcptasks_crds.errors import InvalidValue
from mcptasks_crds.kinds import TOOL
from mcptasks_service.catalogue import OfferedTool, read_tool
from mcptasks_service.errors import ArgumentsInvalid, ToolNotFound

from .core_parts import BOUND, replica
from .fake_api import NAMESPACE


def offered(schema: dict[str, Any] | None = None, version: str | None = "1", **spec: Any) -> OfferedTool:
    meta = {"name": "build", "namespace": "ns", "uid": "u", "resourceVersion": version}
    spec = {"job": {"template": {}}, **({"inputSchema": schema} if schema is not None else {}), **spec}
    return read_tool({"metadata": meta, "spec": spec})


SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "deep": {"type": "array", "items": {"type": "object", "properties": {"n": {"maximum": 3}}}},
        "shared": {"$ref": "#/$defs/shared"},
    },
    "required": ["path"],
    "additionalProperties": False,
    "$defs": {"shared": {"enum": ["a"]}},
}


def test_arguments_that_fit_pass() -> None:
    offered(SCHEMA).check({"path": "x", "deep": [{"n": 3}], "shared": "a"})
    offered().check({"anything": 1})


@pytest.mark.req("R-8.1")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "Arguments of build are invalid at arguments: 'path' is a required property"),
        ({"path": 7}, "invalid at arguments.path: 7 is not of type 'string'"),
        ({"path": "x", "deep": [{}, {"n": 4}]}, "invalid at arguments.deep[1].n: 4 is greater than the maximum of 3"),
        ({"path": "x", "shared": "b"}, "invalid at arguments.shared: 'b' is not one of ['a']"),
        ({"path": "x", "more": 1}, "('more' was unexpected)"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_the_place_and_the_value(
    arguments: dict[str, Any], words: str
) -> None:
    with pytest.raises(ArgumentsInvalid) as refused:
        offered(SCHEMA).check(arguments)
    assert words in str(refused.value)


def test_a_refusal_is_short_whatever_was_sent() -> None:
    schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    with pytest.raises(ArgumentsInvalid) as refused:
        offered(schema).check({"k" * 10_000: "v" * 10_000})
    assert len(str(refused.value)) < 700


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "no-such-type"},
        {"properties": {"a": {"$ref": "#/$defs/nowhere"}}},
        {"properties": {"a": {"pattern": "("}}},
    ],
)
def test_a_schema_that_is_unsound_is_said_to_be_the_tool_s_fault(schema: dict[str, Any]) -> None:
    with pytest.raises(ArgumentsInvalid, match="unsound inputSchema; its owner must mend it"):
        offered(schema).check({"a": "x"})


def test_a_schema_is_never_fetched_from_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[object] = []

    def connect(_: object, address: object, *__: object) -> None:
        sent.append(address)
        raise OSError("no network here")

    monkeypatch.setattr("socket.socket.connect", connect)
    with pytest.raises(ArgumentsInvalid, match="unsound"):
        offered({"properties": {"a": {"$ref": "http://169.254.169.254/latest"}}}).check({"a": 1})
    assert sent == []


def test_a_schema_may_refer_to_the_schema_of_schemas() -> None:
    tool = offered({"properties": {"a": {"$ref": "https://json-schema.org/draft/2020-12/schema"}}})
    tool.check({"a": {"type": "string"}})
    with pytest.raises(ArgumentsInvalid, match=r"at arguments\.a"):
        tool.check({"a": 7})


def test_arguments_nested_beyond_any_sense_are_refused() -> None:
    deep: Any = None
    for _ in range(3000):
        deep = {"a": deep}
    with pytest.raises(ArgumentsInvalid, match="nested too deeply"):
        offered({"$ref": "#/$defs/n", "$defs": {"n": {"properties": {"a": {"$ref": "#/$defs/n"}}}}}).check(deep)


def test_what_is_no_tool_is_not_read() -> None:
    with pytest.raises(InvalidValue, match="job"):
        read_tool({"metadata": {"name": "a"}, "spec": {}})


def test_an_older_state_of_a_tool_does_not_replace_a_later_one() -> None:
    assert offered(version="10").newer_than(offered(version="9"))
    assert not offered(version="9").newer_than(offered(version="10"))
    assert offered(version=None).newer_than(offered(version="9")), "what does not tell is believed"
    assert (offered().key, offered().uid) == (("ns", "build"), "u")


async def test_tools_are_offered_by_name_as_soon_as_they_are_written() -> None:
    async with replica() as parts:
        catalogue = parts.core.tasks.catalogue
        assert [tool.metadata.name for tool in catalogue.tools()] == ["build"]
        changes = catalogue.changes()
        news = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        await parts.api.offer("analyse", description="first")
        async with asyncio.timeout(BOUND):
            await news
        assert [tool.metadata.name for tool in catalogue.tools()] == ["analyse", "build"]
        assert catalogue.tool("analyse").spec.description == "first"
        with pytest.raises(ToolNotFound, match="Unknown tool: 'nope'"):
            catalogue.tool("nope")
        await changes.aclose()  # type: ignore[attr-defined]


async def test_only_what_a_client_can_see_counts_as_a_change() -> None:
    async with replica() as parts:
        changes = parts.core.tasks.catalogue.changes()
        news = asyncio.ensure_future(anext(changes))
        await asyncio.sleep(0)
        _, tools = parts.core.informers
        moved = asyncio.Event()
        with tools.listen(None, lambda *_: moved.set()):
            await parts.api.patch(TOOL, NAMESPACE, "build", {"status": {"active": 1}}, subresource="status")
            async with asyncio.timeout(BOUND):
                await moved.wait()
        await asyncio.sleep(0)
        assert not news.done(), "the operator's counts are no news"
        await parts.api.delete(TOOL, NAMESPACE, "build")
        async with asyncio.timeout(BOUND):
            await news
        await changes.aclose()  # type: ignore[attr-defined]
