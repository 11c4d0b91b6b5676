"""What a watch event does."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import kopf
import pytest
from kubernetes.aio.client import Configuration

from mcptasks_crds.kinds import JOB, POD, TASK, TOOL, Kind
from mcptasks_operator.feed import SELECTOR, WatchEnded, connection, known, read, watch, watch_settings
from mcptasks_operator.observe import PodState
from mcptasks_operator.settings import Settings

from .cluster import NAMESPACE
from .edges import Edges
from .objects import job_object, pod_object, task_object, terminated, tool_object

EVERY = [(TASK, task_object()), (TOOL, tool_object()), (JOB, job_object()), (POD, pod_object())]


def take(edges: Edges, kind: Kind, item: dict[str, Any], *, gone: bool = False) -> None:
    edges.feed.event(kind, read(kind, item), known(item) if gone else None)


def counts(edges: Edges) -> list[int]:
    store = edges.store
    return [len(list(items)) for items in (store.tasks(), store.tools(), store.jobs(), store.pods())]


def test_each_kind_is_kept_and_forgotten() -> None:
    edges = Edges()
    for kind, item in EVERY:
        take(edges, kind, item)
    assert counts(edges) == [1, 1, 1, 1]
    for kind, item in reversed(EVERY):
        take(edges, kind, item, gone=True)
    assert counts(edges) == [0, 0, 0, 0]


def test_the_age_of_a_watch_counts_from_its_last_event() -> None:
    edges = Edges()
    edges.clock.now += 30
    assert edges.feed.age(TASK) == 30
    take(edges, TASK, task_object())
    assert edges.feed.age(TASK) == 0
    assert edges.feed.age(POD) == 30


def test_an_object_that_can_not_be_read_is_left_out_and_said(caplog: pytest.LogCaptureFixture) -> None:
    edges = Edges()
    take(edges, TASK, {"metadata": {"name": "odd", "namespace": NAMESPACE}})
    assert counts(edges)[0] == 0
    assert "MCPTask odd can't be read" in caplog.text


def test_a_stale_event_changes_nothing() -> None:
    edges = Edges()
    take(edges, TASK, task_object(version=20, status={"state": "working"}))
    take(edges, TASK, task_object(version=10))
    (task,) = edges.store.tasks()
    assert task.state == "working"


def test_a_task_that_is_deleted_by_its_last_event_is_not_taken_in_again() -> None:
    edges = Edges()
    take(edges, TASK, task_object(), gone=True)
    assert counts(edges)[0] == 0


def test_kopf_writes_nothing_and_sees_only_what_is_ours() -> None:
    settings = watch_settings()
    assert not settings.posting.enabled
    assert settings.scanning.disabled
    for group, plural in (("batch", "jobs"), ("", "pods")):
        assert settings.watching.label_selectors[group, "v1", plural] == SELECTOR
    storage = settings.persistence.diffbase_storage
    body: Any = {}
    assert storage.build(body=body) == {}
    assert storage.fetch(body=body) is None
    storage.store(body=body, patch=kopf.Patch(), essence=kopf.BodyEssence())


def test_kopf_connects_as_our_own_client_does(tmp_path: Path) -> None:
    configuration = Configuration(host="https://10.0.0.1", ssl_ca_cert=str(tmp_path / "ca.crt"))
    configuration.api_key["BearerToken"] = "bearer " + base64.b64encode(b"token").decode()
    info = connection(configuration)
    assert info.server == "https://10.0.0.1"
    assert info.ca_path == str(tmp_path / "ca.crt")
    assert info.as_http_headers() == {"Authorization": "Bearer dG9rZW4="}
    assert not info.insecure


async def test_events_come_from_the_thread_of_the_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    edges, arrived = Edges(), asyncio.Event()
    monkeypatch.setattr(edges.feed, "event", lambda *_: arrived.set())

    async def operator(*, registry: Any, stop_flag: Any, **_: Any) -> None:
        (handler,) = [h for h in registry._watching.get_all_handlers() if h.id == "take-mcptasks"]
        await handler.fn(event={"type": "ADDED", "object": task_object()})
        await asyncio.get_running_loop().run_in_executor(None, stop_flag.wait)

    monkeypatch.setattr(kopf, "operator", operator)
    watching = asyncio.create_task(watch(edges.feed, Settings(namespaces=[NAMESPACE])))
    await asyncio.wait_for(arrived.wait(), 10)
    watching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(watching, 10)


async def test_watches_that_end_by_themselves_are_a_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    async def operator(**_: Any) -> None:
        raise RuntimeError("410 in a list")

    monkeypatch.setattr(kopf, "operator", operator)
    with pytest.raises(WatchEnded, match="410 in a list"):
        await asyncio.wait_for(watch(Edges().feed, Settings()), 10)


def test_the_last_state_of_a_pod_that_is_gone_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod whose every other event was lost: its deletion tells how it ended."""
    edges = Edges()
    take(edges, TASK, task_object())
    take(edges, JOB, job_object())
    seen: list[Any] = []
    put = edges.store.put_pod

    def spy(pod: PodState) -> bool:
        seen.append(pod)
        return put(pod)

    monkeypatch.setattr(edges.store, "put_pod", spy)
    take(edges, POD, pod_object(state=terminated(0)), gone=True)
    assert [pod.exit.code for pod in seen] == [0]
    assert counts(edges)[3] == 0
