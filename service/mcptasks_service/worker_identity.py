"""Which task a worker speaks for: projected token → TokenReview → pod → Job → task."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from mcptasks_crds.api import Api
from mcptasks_crds.errors import ApiFailure, McpTasksError, NotFound
from mcptasks_crds.kinds import JOB, POD, TASK, TOKEN_REVIEW
from mcptasks_crds.names import AUDIENCE, LABEL_TASK, job_name
from mcptasks_crds.record import TaskRecord, record
from mcptasks_service.informer import Informer
from mcptasks_service.store import unavailable

CACHE_SECONDS = 5.0
"""How long a positive answer is believed. A token outlives its pod by about 10 s anyway."""
CACHE_SIZE = 4096

_USER_PREFIX = "system:serviceaccount:"
_POD_NAME, _POD_UID = "authentication.kubernetes.io/pod-name", "authentication.kubernetes.io/pod-uid"


class WorkerRefused(Exception):
    """The caller is not the worker of a task that runs, or what it reports can't be taken.

    ``code`` is the HTTP status, ``reason`` one word for metrics.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


@dataclass(frozen=True, slots=True)
class Worker:
    """A pod, and the Job that controls it."""

    namespace: str
    pod: str
    task: str
    job: str
    job_uid: str


class WorkerIdentity:
    """Answers who a token is, with a short cache."""

    def __init__(self, api: Api, informer: Informer[TaskRecord], namespace: str, clock: Callable[[], float]) -> None:
        self._api, self._informer, self._namespace, self._clock = api, informer, namespace, clock
        self._cache: dict[bytes, tuple[float, Worker]] = {}

    async def task(self, authorization: str | None) -> TaskRecord:
        """The task whose present attempt the bearer of ``authorization`` works on.

        Raises:
            WorkerRefused: no token, not a worker's, or its attempt is no longer the recorded one.
            Unavailable: the API server can't say.
        """
        scheme, _, token = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not token:
            raise WorkerRefused(
                401, "no_token", "Send the pod's token: Authorization: Bearer $(cat $MCPTASKS_TOKEN_FILE)"
            )
        worker = await self._worker(token)
        task = self._informer.get(worker.namespace, worker.task)
        if task is None or not _present(worker, task):
            # This replica's watch may lag behind a task or an attempt made by others a moment ago.
            task = await self._fetch(worker)
        if not _present(worker, task):
            raise WorkerRefused(409, "superseded", f"Job {worker.job} is not the present attempt of task {worker.task}")
        return task

    async def _fetch(self, worker: Worker) -> TaskRecord:
        try:
            task = record(await self._api.get(TASK, worker.namespace, worker.task))
        except NotFound:
            message = f"Task {worker.task} is gone: it was deleted or has expired"
            raise WorkerRefused(404, "no_task", message) from None
        except ApiFailure as error:
            raise unavailable(error) from error
        except (KeyError, ValueError, McpTasksError) as error:
            raise WorkerRefused(404, "no_task", f"Task {worker.task} can't be read: {error!r}") from error
        self._informer.put(task)
        return task

    async def _worker(self, token: str) -> Worker:
        digest = hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        now = self._clock()
        if (hit := self._cache.get(digest)) is not None and hit[0] > now:
            return hit[1]
        try:
            worker = await self._review(token)
        except ApiFailure as error:
            raise unavailable(error) from error
        self._cache.pop(digest, None)
        self._cache[digest] = (now + CACHE_SECONDS, worker)
        while (oldest := next(iter(self._cache))) != digest:  # they run out in the order in which they came
            if len(self._cache) <= CACHE_SIZE and self._cache[oldest][0] > now:
                break
            del self._cache[oldest]
        return worker

    async def _review(self, token: str) -> Worker:
        status = await self._api.review(TOKEN_REVIEW, {"token": token, "audiences": [AUDIENCE]})
        user = status.get("user") or {}
        if not status.get("authenticated") or AUDIENCE not in (status.get("audiences") or []):
            raise WorkerRefused(401, "bad_token", f"The token is not a pod's token for audience {AUDIENCE}")
        extra: Mapping[str, list[str]] = user.get("extra") or {}
        namespace = self._namespace
        pod_name = next(iter(extra.get(_POD_NAME) or []), None)
        if pod_name is None or not user.get("username", "").startswith(f"{_USER_PREFIX}{namespace}:"):
            raise WorkerRefused(403, "not_a_pod", "The token does not belong to a pod of this service's namespace")
        try:
            # TokenReview still says yes for about 10 s after the pod has gone: ask for the pod itself.
            pod = await self._api.get(POD, namespace, pod_name)
        except NotFound:
            raise WorkerRefused(403, "pod_gone", f"Pod {pod_name} is gone") from None
        return _worker_of(pod, extra)


def _present(worker: Worker, task: TaskRecord) -> bool:
    """Whether a worker's Job is the attempt that counts. It may run before its uid is recorded: its name tells."""
    return task.job_uid in (None, worker.job_uid) and worker.job == job_name(task.uid, max(task.attempt, 1))


def _worker_of(pod: Mapping[str, Any], extra: Mapping[str, list[str]]) -> Worker:
    meta = pod["metadata"]
    if meta["uid"] not in (extra.get(_POD_UID) or []) or meta.get("deletionTimestamp"):
        raise WorkerRefused(403, "pod_gone", f"Pod {meta['name']} has been told to stop")
    owner = next((o for o in meta.get("ownerReferences") or [] if o.get("controller") and o["kind"] == JOB.name), None)
    task = (meta.get("labels") or {}).get(LABEL_TASK)
    if owner is None or task is None:
        raise WorkerRefused(403, "not_a_worker", f"Pod {meta['name']} does not run a task")
    return Worker(meta["namespace"], meta["name"], task, owner["name"], owner["uid"])
