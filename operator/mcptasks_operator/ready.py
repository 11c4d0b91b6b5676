"""The status of tools: whether a call would get its pod, and how many run and wait.

It is the *pod* that is tried with a dry run, since a Job passes whatever its pods are refused for later: Pod Security,
a missing ServiceAccount.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from mcptasks_crds.api import Api
from mcptasks_crds.errors import ApiFailure, Conflict, InvalidValue, NotFound, Refused
from mcptasks_crds.kinds import POD, TOOL
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.times import render
from mcptasks_operator.decide import QUOTA
from mcptasks_operator.job import build_pod
from mcptasks_operator.observe import ToolState, read_tool
from mcptasks_operator.slots import Key
from mcptasks_operator.store import Store
from mcptasks_operator.surroundings import Surroundings

logger = logging.getLogger(__name__)

PACE = 1.0
"""Seconds between two looks, so that a busy tool is looked at once in that time."""
COUNTS_AFTER = 10.0
"""Seconds for which a tool's counts must have been wrong before they are written: a short task costs no write."""
AGAIN_SECONDS = 60.0
"""Seconds before a tool is tried again whose pod was refused for what lies outside of it: a quota, a missing
ServiceAccount, rights."""

FAILED_SECONDS = 5.0
"""Seconds before a look that failed is taken again."""

_PASSING = ("QuotaExceeded", "PodRefused")
"""Verdicts that may change without the tool being changed."""
_SAMPLE = "00000000-0000-0000-0000-000000000000"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the Ready condition says."""

    status: str
    reason: str
    message: str = ""


class Ready:
    """``clock`` is epoch seconds."""

    def __init__(self, api: Api, store: Store, clock: Callable[[], float], surroundings: Surroundings) -> None:
        self._api, self._store, self._clock, self._surroundings = api, store, clock, surroundings
        self._dirty: dict[Key, None] = {}
        self._wake = asyncio.Event()
        self._again: dict[Key, float] = {}
        """When a passing verdict is to be looked at again."""
        self._miscounted: dict[Key, float] = {}
        """When wrong counts are to be written."""

    def touch(self, tool: Key) -> None:
        """Something about the tool, or its tasks, has changed."""
        self._dirty[tool] = None
        self._wake.set()

    async def run(self) -> None:
        """Look at what has changed, until cancelled."""
        while True:
            first = min((*self._again.values(), *self._miscounted.values()), default=None)
            try:
                async with asyncio.timeout(None if first is None else max(first - self._clock(), 0)):
                    await self._wake.wait()
            except TimeoutError:
                pass
            self._wake.clear()
            now = self._clock()
            due = [key for times in (self._again, self._miscounted) for key, at in times.items() if at <= now]
            dirty, self._dirty = self._dirty | dict.fromkeys(due), {}
            for key in dirty:
                await self._look(key)
            await asyncio.sleep(PACE)

    async def _look(self, key: Key) -> None:
        if (tool := self._store.tool(key)) is None:
            self._again.pop(key, None)
            self._miscounted.pop(key, None)
            return
        try:
            if status := self._counts(tool) | await self._verdict(tool):
                answer = await self._api.patch(
                    TOOL,
                    tool.namespace,
                    tool.name,
                    {"status": status},
                    subresource="status",
                    resource_version=tool.version,
                )
                self._store.put_tool(read_tool(answer))
        except (Conflict, NotFound):
            # It has changed, or is gone: its event, which is on its way, brings it here again.
            logger.debug("tool %s changed while it was looked at", tool.name)
        except ApiFailure as error:
            logger.warning("tool %s not looked at: %s; trying again", tool.name, error)
            self._again[key] = self._clock() + FAILED_SECONDS

    def _counts(self, tool: ToolState) -> dict[str, Any]:
        """How many run and wait, if what is written has been wrong for long enough."""
        active, queued = self._store.slots.counts(tool.key)
        if (tool.active or 0, tool.queued or 0) == (active, queued):
            self._miscounted.pop(tool.key, None)
            return {}
        if self._clock() < self._miscounted.setdefault(tool.key, self._clock() + COUNTS_AFTER):
            return {}
        del self._miscounted[tool.key]
        return {"active": active, "queued": queued}

    async def _verdict(self, tool: ToolState) -> dict[str, Any]:
        """The Ready condition, if it is to be written."""
        passing = (tool.ready or {}).get("reason") in _PASSING
        if tool.looked_at == tool.generation and not (passing and self._clock() >= self._again.get(tool.key, 0)):
            return {}
        verdict = await self.judge(tool)
        self._again.pop(tool.key, None)
        if verdict.reason in _PASSING:
            self._again[tool.key] = self._clock() + AGAIN_SECONDS
        if (condition := self._condition(tool, verdict)) is None:
            return {}
        level = logging.INFO if verdict.status == "True" else logging.WARNING
        words = f"{verdict.reason} · {verdict.message}" if verdict.message else verdict.reason
        logger.log(level, "tool %s ready=%s %s", tool.name, verdict.status, words)
        return {"conditions": [condition]}

    async def judge(self, tool: ToolState) -> Verdict:
        """Whether a call of the tool would get its pod.

        Raises:
            ApiFailure: it can't be told now.
        """
        for field, schema in (("inputSchema", tool.spec.input_schema), ("outputSchema", tool.spec.output_schema)):
            if schema is not None and (wrong := schema_fault(schema)) is not None:
                return Verdict("False", "SchemaInvalid", f"spec.{field} is no JSON Schema 2020-12: {wrong}")
        try:
            await self._api.create(
                POD, tool.namespace, build_pod(tool.spec, _sample(tool), self._surroundings), dry_run=True
            )
        except InvalidValue as error:
            return Verdict("False", "TemplateInvalid", str(error))
        except Refused as error:
            return Verdict("False", "TemplateInvalid", f"spec.job.template: {error}")
        except ApiFailure as error:
            if error.code != 403:
                raise
            if QUOTA in str(error):
                return Verdict("True", "QuotaExceeded", f"valid, but there is no room now: {error}")
            if 'cannot create resource "pods"' in str(error):
                return Verdict("Unknown", "PodRefused", f"mcptasks may not try pods in this namespace: {error}")
            return Verdict("False", "PodRefused", str(error))
        return Verdict("True", "Valid", "")

    def _condition(self, tool: ToolState, verdict: Verdict) -> dict[str, Any] | None:
        old: Mapping[str, Any] = tool.ready or {}
        new = {
            "type": "Ready",
            "status": verdict.status,
            "reason": verdict.reason,
            "message": verdict.message,
            "observedGeneration": tool.generation,
        }
        if all(old.get(name, "") == value for name, value in new.items()):
            return None
        moved = old.get("status") != verdict.status
        return {**new, "lastTransitionTime": render(self._clock()) if moved else old["lastTransitionTime"]}


def schema_fault(schema: Mapping[str, Any]) -> str | None:
    """What is wrong with a JSON Schema 2020-12; None = nothing."""
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        path = "/".join(str(part) for part in error.absolute_path)
        return f"{error.message[:500]}{f' (at {path})' if path else ''}"
    return None


def _sample(tool: ToolState) -> TaskRecord:
    """A task as a call of the tool would make it."""
    return TaskRecord(
        namespace=tool.namespace,
        name="t-" + "0" * 40,
        uid=_SAMPLE,
        resource_version="",
        task_id=_SAMPLE,
        owner_key="",
        tool=tool.name,
        created=0.0,
        stored=0.0,
    )
