"""Leader election over a Lease, so that one replica writes.

Not the official client's elector: that one stamps local time as UTC, never releases the Lease, and measures with the
wall clock. Here another's Lease is free when it has not changed for its duration by our own monotonic clock, so no two
clocks need agree. A short double leadership does no damage: every write is guarded, and every name derived.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from mcptasks_crds.api import Api, Object
from mcptasks_crds.errors import AlreadyExists, ApiFailure, Conflict, McpTasksError, NotFound
from mcptasks_crds.kinds import LEASE

logger = logging.getLogger(__name__)


class LeaseLost(McpTasksError):
    """Another replica leads, or may: the process must end, which is the safest fence."""


class Lease:
    """One Lease. ``seconds`` is its duration, ``renew`` the pause between two renewals."""

    def __init__(
        self,
        api: Api,
        namespace: str,
        name: str,
        identity: str,
        *,
        seconds: int,
        renew: float,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._namespace, self._name, self._identity = api, namespace, name, identity
        self._seconds, self._renew, self._monotonic = seconds, renew, monotonic
        self._held: Object | None = None
        self._sent: set[str] = set()
        """The times in our writes since the last that was answered: by them we know what we wrote without an answer."""
        self._seen: tuple[str, float] = ("", 0.0)

    async def acquire(self) -> None:
        """Wait until the Lease is ours."""
        told = False
        while True:
            try:
                holder = await self._try()
            except ApiFailure as error:
                logger.warning("the Lease %s can't be had: %s", self._name, error)
                holder = "unknown"
            if holder is None:
                return
            if not told:
                logger.info("%s leads; standing by", holder)
                told = True
            await asyncio.sleep(self._renew)

    async def hold(self) -> None:
        """Renew the Lease until cancelled.

        Raises:
            LeaseLost: somebody else has it, or it could not be renewed in time.
        """
        # A margin of one renewal: others may see it run out earlier than we do.
        most = self._seconds - self._renew
        renewed = self._monotonic()
        while True:
            await asyncio.sleep(self._renew)
            began = self._monotonic()
            try:
                # A request that hangs must not outlive the Lease.
                async with asyncio.timeout(max(renewed + most - began, 0)):
                    await self._write(self._held_spec())
            except Conflict:
                if not await self._ours():
                    raise LeaseLost(f"another replica has taken the Lease {self._name}") from None
            except NotFound:
                raise LeaseLost(f"the Lease {self._name} was deleted") from None
            except (ApiFailure, TimeoutError) as error:
                if self._monotonic() - renewed >= most:
                    why = str(error) or "no answer"
                    raise LeaseLost(f"the Lease {self._name} could not be renewed in time: {why}") from error
                logger.warning("the Lease %s is not renewed yet: %s", self._name, error)
                continue
            renewed = began

    async def release(self) -> None:
        """Give it up, so that another need not wait for it to run out."""
        if self._held is None:
            return
        try:
            await self._write({**self._held_spec(), "holderIdentity": "", "leaseDurationSeconds": 1})
        except ApiFailure as error:
            logger.info("the Lease %s runs out by itself: %s", self._name, error)
        self._held = None

    async def _try(self) -> str | None:
        """Take it if it is free; else who has it."""
        try:
            lease = await self._api.get(LEASE, self._namespace, self._name)
        except NotFound:
            return await self._create()
        spec: dict[str, Any] = lease.get("spec") or {}
        holder: str = spec.get("holderIdentity") or ""
        version = lease["metadata"]["resourceVersion"]
        if version != self._seen[0]:
            self._seen = (version, self._monotonic())
        duration = spec.get("leaseDurationSeconds") or self._seconds
        if holder and holder != self._identity and self._monotonic() - self._seen[1] < duration:
            return holder
        self._held = lease
        try:
            taken = {**self._held_spec(), "acquireTime": _now()}
            taken["leaseTransitions"] = (spec.get("leaseTransitions") or 0) + (holder != self._identity)
            await self._write(taken)
        except Conflict:
            self._held = None
            return "another replica"
        return None

    async def _create(self) -> str | None:
        self._held, now = None, _now()
        spec = self._held_spec() | {"acquireTime": now, "renewTime": now, "leaseTransitions": 0}
        try:
            self._held = await self._api.create(
                LEASE, self._namespace, {"metadata": {"name": self._name}, "spec": spec}
            )
        except AlreadyExists:
            return "another replica"
        return None

    def _held_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = (self._held or {}).get("spec") or {}
        return {**spec, "holderIdentity": self._identity, "leaseDurationSeconds": self._seconds}

    async def _write(self, spec: dict[str, Any]) -> None:
        """PUT it with the resourceVersion that we know: one of several who try gets it."""
        held, now = self._held or {}, _now()
        self._sent.add(now)
        meta = {key: held["metadata"][key] for key in ("name", "namespace", "resourceVersion")}
        body = {"metadata": meta, "spec": {**spec, "renewTime": now}}
        self._held = await self._api.replace(LEASE, self._namespace, self._name, body)
        self._sent.clear()

    async def _ours(self) -> bool:
        """Whether the state that stood in the way is our own write, whose answer did not come."""
        try:
            lease = await self._api.get(LEASE, self._namespace, self._name)
        except ApiFailure:
            return False
        spec = lease.get("spec") or {}
        ours: bool = spec.get("holderIdentity") == self._identity and spec.get("renewTime") in self._sent
        if ours:
            self._held = lease
            self._sent.clear()
        return ours


def _now() -> str:
    """A MicroTime, in UTC whatever the process's zone."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
