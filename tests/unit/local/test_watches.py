import asyncio
import json
from typing import Any

import pytest

from mcptasks_local.objects import Objects
from mcptasks_local.selectors import matcher
from mcptasks_local.storage import Storage
from mcptasks_local.watches import Watch, lines
from tests.unit.local.widgets import new_objects, widget


@pytest.fixture
def objects() -> Objects:
    return new_objects()


def watch(objects: Objects, labels: str = "", fields: str = "", **more: Any) -> Watch:
    kind = objects.resource("widgets.example.dev")
    return Watch(resource=kind, namespace="default", matches=matcher(kind, labels, fields), **more)


async def told(stream: Any, count: int) -> list[Any]:
    async with asyncio.timeout(10):
        return [json.loads(await anext(stream)) for _ in range(count)]


async def test_a_selector_sees_objects_come_and_go(objects: Objects) -> None:
    kind = objects.resource("widgets.example.dev")
    stream = lines(objects, watch(objects, labels="a=b", since=objects.revision))
    objects.create(kind, "default", widget("w"))
    for labels in ({"a": "b"}, {"a": "b", "c": "d"}, {"a": None}, {"a": "b"}):
        objects.patch(kind, "default", "w", {"metadata": {"labels": labels}})
    objects.delete(kind, "default", "w")
    events = await told(stream, 5)
    assert [event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED", "ADDED", "DELETED"]


async def test_a_field_of_the_kind_selects_too(objects: Objects) -> None:
    kind = objects.resource("widgets.example.dev")
    stream = lines(objects, watch(objects, fields="status.state=busy", since=objects.revision))
    for name in "ab":
        objects.create(kind, "default", widget(name))
    objects.patch(kind, "default", "b", {"status": {"state": "busy"}}, subresource="status")
    (event,) = await told(stream, 1)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "b")


async def test_what_exists_comes_first_and_its_end_is_marked(objects: Objects) -> None:
    kind = objects.resource("widgets.example.dev")
    objects.create(kind, "default", widget("a"))
    stream = lines(objects, watch(objects, initial=True, marked=True))
    objects.create(kind, "default", widget("b"))  # after the call, before it is read
    added, mark, live = await told(stream, 3)
    assert (added["type"], added["object"]["metadata"]["name"]) == ("ADDED", "a")
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert live["object"]["metadata"]["name"] == "b"


async def test_silence_is_filled_with_bookmarks_and_the_end_comes_in_time(objects: Objects) -> None:
    silent = watch(objects, since=objects.revision, bookmarks=True, seconds=0.3, bookmark_seconds=0.05)
    events = [json.loads(line) async for line in lines(objects, silent)]
    assert {event["type"] for event in events} == {"BOOKMARK"}
    assert {event["object"]["metadata"]["resourceVersion"] for event in events} == {str(objects.revision)}
    assert 2 <= len(events) <= 6
    quiet = watch(objects, since=objects.revision, seconds=0.1, bookmark_seconds=0.02)
    assert [line async for line in lines(objects, quiet)] == []


async def test_a_revision_that_is_too_old_is_told_in_the_stream() -> None:
    objects = new_objects(Storage(None, kept_events=1))
    (event,) = [json.loads(line) async for line in lines(objects, watch(objects, since=1))]
    assert (event["type"], event["object"]["code"], event["object"]["reason"]) == ("ERROR", 410, "Expired")


async def test_a_stream_ends_with_the_storage() -> None:
    storage = Storage(None)
    objects = new_objects(storage)
    stream = lines(objects, watch(objects, since=objects.revision))
    storage.close()
    assert [line async for line in stream] == []
