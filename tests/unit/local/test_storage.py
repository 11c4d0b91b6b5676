import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from mcptasks_local.errors import ApiError
from mcptasks_local.storage import Storage, StorageInUse


def thing(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "x", "uid": "u"}, "spec": spec}


def test_every_write_has_its_own_growing_revision() -> None:
    storage = Storage(None)
    first = storage.put("widgets", "default", "a", thing(n=1))
    second = storage.put("widgets", "default", "a", thing(n=2))
    gone = storage.remove("widgets", "default", "a")
    assert gone is not None
    assert [int(o["metadata"]["resourceVersion"]) for o in (first, second, gone)] == [2, 3, 4]
    assert storage.revision == 4


def test_objects_come_by_namespace_and_name() -> None:
    storage = Storage(None)
    for namespace, name in (("b", "x"), ("a", "z"), ("a", "y")):
        storage.put("widgets", namespace, name, {"metadata": {"name": name, "namespace": namespace}})
    assert [o["metadata"]["name"] for o in storage.of("widgets")] == ["y", "z", "x"]
    assert [o["metadata"]["name"] for o in storage.of("widgets", "b")] == ["x"]
    assert storage.resources() == ["widgets"]
    assert storage.get("widgets", "b", "nope") is None
    assert storage.remove("widgets", "b", "nope") is None


def test_a_restart_brings_back_objects_and_revision(tmp_path: Path) -> None:
    storage = Storage(tmp_path / "db")
    storage.put("widgets", "default", "a", thing(n=1))
    storage.put("widgets", "default", "b", thing(n=2))
    storage.remove("widgets", "default", "b")
    storage.close()
    again = Storage(tmp_path / "db")
    assert again.revision == 4
    assert [o["spec"] for o in again.of("widgets")] == [{"n": 1}]
    again.watch("widgets", 4)  # exactly where it was: nothing was missed
    with pytest.raises(ApiError) as told:
        again.watch("widgets", 3)
    assert told.value.code == 410


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys
        from pathlib import Path
        from mcptasks_local.storage import Storage
        storage = Storage(Path(sys.argv[1]))
        for n in range(10**9):
            storage.put("widgets", "default", "a", {"metadata": {"name": "a"}, "n": n})
            print(n, flush=True)
    """)
    child = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "db")], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    seen = [int(child.stdout.readline()) for _ in range(200)]
    os.kill(child.pid, signal.SIGKILL)
    seen += [int(line) for line in child.stdout.read().split("\n")[:-1]]
    child.wait(10)
    child.stdout.close()
    there = Storage(tmp_path / "db").get("widgets", "default", "a")
    assert there is not None
    assert there["n"] >= seen[-1]


def test_a_second_server_is_told_that_the_file_is_in_use(tmp_path: Path) -> None:
    first = Storage(tmp_path / "db")
    with pytest.raises(StorageInUse, match="take another folder"):
        Storage(tmp_path / "db")
    first.close()
    Storage(tmp_path / "db").close()


async def test_a_watch_tells_the_past_then_the_present() -> None:
    storage = Storage(None)
    storage.put("widgets", "default", "a", thing(n=1))
    storage.put("gadgets", "default", "g", thing(n=1))
    storage.put("widgets", "default", "a", thing(n=2))
    events = storage.watch("widgets", 2)
    storage.remove("widgets", "default", "a")
    modified, deleted = await anext(events), await anext(events)
    assert (modified.type, modified.old, deleted.type) == ("MODIFIED", thing(n=1) | {"metadata": {"name": "x",
            "uid": "u", "resourceVersion": "2"}}, "DELETED")  # fmt: skip
    assert int(deleted.object["metadata"]["resourceVersion"]) == deleted.revision


async def test_a_watch_of_all_kinds_begins_when_it_is_called() -> None:
    storage = Storage(None)
    storage.put("widgets", "default", "a", thing())
    events = storage.watch(None)
    storage.put("gadgets", "default", "g", thing())
    assert (await asyncio.wait_for(anext(events), 5)).resource == "gadgets"


@pytest.mark.parametrize("since", [1, 99])
async def test_a_revision_out_of_the_log_is_410(since: int) -> None:
    storage = Storage(None, kept_events=2)
    for n in range(5):
        storage.put("widgets", "default", "a", thing(n=n))
    for call in (lambda: storage.watch("widgets", since), lambda: storage.as_of("widgets", since)):
        with pytest.raises(ApiError) as told:
            call()
        assert (told.value.code, told.value.reason) == (410, "Expired")


async def test_a_reader_that_is_too_slow_is_ended() -> None:
    storage = Storage(None, kept_events=3)
    events = storage.watch("widgets")
    for n in range(5):
        storage.put("widgets", "default", "a", thing(n=n))
    assert [event.object["spec"]["n"] async for event in events] == []


async def test_closing_ends_watches() -> None:
    storage = Storage(None)
    events = storage.watch("widgets")
    storage.close()
    assert [event async for event in events] == []


def test_the_past_is_what_it_was() -> None:
    storage = Storage(None)
    for name in "ab":
        storage.put("widgets", "default", name, {"metadata": {"name": name, "namespace": "default"}, "n": 1})
    then = storage.revision
    storage.put("widgets", "default", "a", {"metadata": {"name": "a", "namespace": "default"}, "n": 2})
    storage.put("widgets", "default", "c", {"metadata": {"name": "c", "namespace": "default"}, "n": 2})
    storage.put("gadgets", "default", "c", {"metadata": {"name": "c", "namespace": "default"}, "n": 2})
    storage.remove("widgets", "default", "b")
    past = storage.as_of("widgets", then)
    assert {name: item["n"] for (_, name), item in past.items()} == {"a": 1, "b": 1}


def test_a_failed_write_leaves_nothing_behind() -> None:
    storage = Storage(None)
    with pytest.raises(TypeError):
        storage.put("widgets", "default", "a", {"metadata": {}, "bad": object()})
    assert storage.revision == 1
    storage.put("widgets", "default", "a", thing())
    assert storage.revision == 2
