"""kopf and the official asyncio client against the API, behind TLS."""

import asyncio
import threading
from pathlib import Path
from typing import Any
from unittest import mock

import kopf
from kubernetes.aio import client, config, watch

from tests.unit.local.widgets import served, widget

GROUP = ("example.dev", "v1", "default", "widgets")


async def test_the_official_client_works_on_custom_objects(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, kubeconfig):
        await config.load_kube_config(str(kubeconfig))
        async with client.ApiClient() as api:
            custom: Any = client.CustomObjectsApi(api)
            made = await custom.create_namespaced_custom_object(*GROUP, widget())
            patched = await custom.patch_namespaced_custom_object_status(
                *GROUP, "a", {"status": {"state": "busy"}}, _content_type="application/merge-patch+json"
            )
            assert patched["status"] == {"state": "busy"}
            listed = await custom.list_namespaced_custom_object(*GROUP, field_selector="status.state=busy")
            assert [item["metadata"]["uid"] for item in listed["items"]] == [made["metadata"]["uid"]]
            seen = []
            async with watch.Watch() as stream, asyncio.timeout(20):
                async for event in stream.stream(
                    custom.list_namespaced_custom_object, *GROUP, resource_version=made["metadata"]["resourceVersion"]
                ):
                    seen.append(event["type"])
                    if len(seen) == 1:
                        options = client.V1DeleteOptions(
                            preconditions=client.V1Preconditions(uid=made["metadata"]["uid"])
                        )
                        await custom.delete_namespaced_custom_object(*GROUP, "a", body=options)
                    if event["type"] == "DELETED":
                        break
            assert seen == ["MODIFIED", "DELETED"]
            spaces: Any = await client.CoreV1Api(api).list_namespace()
            assert [space.metadata.name for space in spaces.items] == ["default"]


async def test_kopf_sees_every_event_and_costs_nothing_more(tmp_path: Path) -> None:
    seen: list[tuple[Any, str]] = []
    told, registry = asyncio.Event(), kopf.OperatorRegistry()

    @kopf.on.event("example.dev", "v1", "widgets", registry=registry)
    async def event(type: Any, name: str, **_: Any) -> None:
        seen.append((type, name))
        told.set()

    @kopf.on.login(registry=registry)
    def login(**given: Any) -> Any:
        return kopf.login_with_kubeconfig(**given)

    settings, stop, ready = kopf.OperatorSettings(), threading.Event(), asyncio.Event()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.chunk_size = 1

    async def until(*wanted: tuple[Any, str]) -> None:
        async with asyncio.timeout(30):
            while not set(wanted) <= set(seen):
                told.clear()
                await told.wait()

    async with served(tmp_path) as (inside, kubeconfig):
        kind, objects = inside.objects.resource("widgets.example.dev"), inside.objects
        for name in "ab":
            objects.create(kind, "default", widget(name))
        with mock.patch.dict("os.environ", {"KUBECONFIG": str(kubeconfig)}):
            running = asyncio.create_task(
                kopf.operator(
                    registry=registry, settings=settings, namespaces=["default"], stop_flag=stop, ready_flag=ready,
                    standalone=True,
                )
            )  # fmt: skip
            try:
                await until((None, "a"), (None, "b"))
                objects.create(kind, "default", widget("c"))
                await until(("ADDED", "c"))
                objects.patch(kind, "default", "c", {"spec": {"size": 5}})
                objects.delete(kind, "default", "c")
                await until(("MODIFIED", "c"), ("DELETED", "c"))
            finally:
                stop.set()
                await asyncio.wait_for(running, 20)
        writes = [key for key in inside.app.requests if key[0] not in ("list", "watch", "get")]
        assert writes == []
