import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from mcptasks_local.collection import Collector
from mcptasks_local.errors import Object

from .laptop import NAMESPACE, Laptop


def owned(name: str, *owners: Object) -> Object:
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"]}
        for owner in owners
    ]
    return {"metadata": {"name": name, "ownerReferences": references}}


@asynccontextmanager
async def collecting(world: Laptop) -> AsyncIterator[None]:
    task = asyncio.create_task(Collector(world.objects).run())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def names(world: Laptop, resource: str) -> list[str]:
    return [item["metadata"]["name"] for item in world.objects.list(world.objects.resource(resource), NAMESPACE)[0]]


async def test_what_is_owned_goes_with_its_last_owner_at_any_depth(tmp_path: Path) -> None:
    world = Laptop(tmp_path)
    async with collecting(world):
        one, two = (world.create("configmaps", {"metadata": {"name": name}}) for name in ("one", "two"))
        middle = world.create("configmaps", owned("middle", one, two))
        world.create("secrets", owned("leaf", middle))
        world.delete("configmaps", "one")
        world.create("secrets", {"metadata": {"name": "marker"}})
        await asyncio.sleep(0)
        assert names(world, "configmaps") == ["middle", "two"]
        world.delete("configmaps", "two")
        await world.until(lambda: names(world, "configmaps") == [] and names(world, "secrets") == ["marker"])


async def test_a_reference_to_another_uid_or_to_nothing_is_a_dead_owner(tmp_path: Path) -> None:
    world = Laptop(tmp_path)
    async with collecting(world):
        owner = world.create("configmaps", {"metadata": {"name": "owner"}})
        wrong = {"metadata": {**owner["metadata"], "uid": "another"}}
        world.create("secrets", owned("stays", owner))
        world.create("secrets", owned("wrong", wrong))
        world.create("secrets", owned("dangling", {"metadata": {"name": "nobody", "uid": "x"}}))
        await world.until(lambda: names(world, "secrets") == ["stays"])


async def test_what_lost_its_owner_while_nobody_looked_is_collected_at_the_start(tmp_path: Path) -> None:
    world = Laptop(tmp_path)
    owner = world.create("configmaps", {"metadata": {"name": "owner"}})
    world.create("secrets", owned("orphan", owner))
    world.delete("configmaps", "owner")
    assert names(world, "secrets") == ["orphan"]
    async with collecting(world):
        await world.until(lambda: names(world, "secrets") == [])
    world.storage.close()
