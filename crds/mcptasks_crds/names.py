"""Names, labels and owner keys. Every name is derived, so that a create that is repeated meets itself."""

import hashlib
from typing import Protocol

LABEL_TASK = "mcptasks.dev/task"
LABEL_TASK_UID = "mcptasks.dev/task-uid"
LABEL_TOOL = "mcptasks.dev/tool"
LABEL_OWNER = "mcptasks.dev/owner"
LABEL_CALL = "mcptasks.dev/call"
LABEL_ATTEMPT = "mcptasks.dev/attempt"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "mcptasks"

TASK_NAME_PATTERN = r"^t-[0-9a-f]{40}$"

AUDIENCE = "mcptasks"
"""Audience of the token that a Job's pod shows to the worker API."""


class OwnerLike(Protocol):
    """What an owner key is made of (``spec.owner`` of an MCPTask)."""

    @property
    def issuer(self) -> str | None: ...
    @property
    def subject(self) -> str | None: ...
    @property
    def session(self) -> str | None: ...


def owner_key(owner: OwnerLike) -> str:
    """The text that stands for an owner: issuer NUL subject, or the session; empty = whoever holds the id.

    Two owners never share a key: no part is empty or holds a NUL (`task.Owner` and the CRD refuse it).
    """
    if owner.subject is not None:
        return f"{owner.issuer or ''}\0{owner.subject}"
    return f"\0\0{owner.session}" if owner.session is not None else ""


def owner_hash(key: str) -> str:
    """An owner key as a label value (32 hex digits), for selectors; empty stays ``anyone``."""
    return hashlib.sha256(key.encode()).hexdigest()[:32] if key else "anyone"


def task_name(key: str, task_id: str) -> str:
    """The name of the MCPTask that ``task_id`` of this owner has, and can only have.

    An id may hold anything, also a NUL, so that a made-up id of one owner can lead to the name of another's task: who
    looks a task up by its name compares owner key and id.
    """
    return "t-" + hashlib.sha256(f"{key}\0{task_id}".encode(errors="surrogatepass")).hexdigest()[:40]


def result_name(task_uid: str) -> str:
    """The MCPTaskResult of one life of a task: a task deleted and made again never meets old data."""
    return f"r-{task_uid}"


def job_name(task_uid: str, attempt: int) -> str:
    """The Job of one attempt (a Job's name has 63 characters at most: a uid has 36)."""
    return f"mct-{task_uid}-{attempt}"


def session_hash(session: str) -> str:
    """A session's id as it stands in ``spec.call``: it finds the tasks of a session without telling the session."""
    return hashlib.sha256(session.encode(errors="surrogatepass")).hexdigest()[:24]


def call_hash(session: str, request_id: str | int) -> str:
    """Names one request of one session, so that ``notifications/cancelled`` finds its task from any replica.

    A JSON-RPC id keeps its type in principle, but clients echo ``7`` as ``"7"``: both count as one.
    """
    request = hashlib.sha256(f"{session}\0{request_id}".encode(errors="surrogatepass")).hexdigest()[:24]
    return f"{session_hash(session)}.{request}"
