"""MCPTask: one durable tool call. The docstrings are what ``kubectl explain mcptask`` prints."""

from typing import Annotated, Any, Literal

from pydantic import Field

from mcptasks_crds.kinds import TASK
from mcptasks_crds.lifecycle import State
from mcptasks_crds.model import Metadata, Model

TASK_ID_LIMIT = 1024
"""Characters of a task id at most. Ids are opaque: gateways add to them on the way."""

MILLISECONDS_LIMIT = 2**53 - 1
"""The largest number that every JSON reader keeps exact; about 285,000 years."""

Milliseconds = Annotated[int, Field(ge=0, le=MILLISECONDS_LIMIT)]
Time = Annotated[str, Field(json_schema_extra={"format": "date-time"})]
AnyObject = Annotated[dict[str, Any], Field(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})]


# Parts of an owner key, which a NUL joins: with one inside, or an empty part, two owners could have one key.
OwnerPart = Annotated[str, Field(min_length=1, pattern=r"^[^\x00]*$")]


class Owner(Model):
    """Who may see the task: the authenticated caller, else the session, else (empty) whoever holds the id."""

    issuer: OwnerPart | None = Field(default=None, max_length=2048)
    """Issuer of the caller's token; empty for a Kubernetes user."""
    subject: OwnerPart | None = Field(default=None, max_length=2048)
    """The caller, as the issuer names it."""
    session: OwnerPart | None = Field(default=None, max_length=256)
    """The MCP session, where nobody is authenticated. Never the session's token."""


class Call(Model):
    """The request that the task runs, exactly as the plain request would."""

    method: Literal["tools/call"] = "tools/call"
    """The MCP method."""
    name: str = Field(min_length=1, max_length=253)
    """The MCPTool to run."""
    arguments: str = "{}"
    """The arguments: the exact text of a JSON object."""


class Retention(Model):
    """How long the task and its result are kept."""

    after: Literal["Finish", "Creation"] = "Finish"
    """Finish: counted from the end (keepAlive). Creation: from creation (ttl); work that outlasts it is still kept
    for a while after its end."""
    milliseconds: Milliseconds
    """How long, in milliseconds."""


class Cancel(Model):
    """A request to stop. Set it once; it stays."""

    reason: str | None = Field(default=None, max_length=1024)
    """Why, for people."""


class TaskSpec(Model):
    """What to run, for whom, and how long to keep it. Immutable but for cancel and retention. By hand, request alone
    is enough."""

    task_id: str | None = Field(default=None, min_length=1, max_length=TASK_ID_LIMIT)
    """The id by which MCP clients know the task; one made by hand has none, and is known by its metadata.uid."""
    owner: Owner = Owner()
    """Who may see it."""
    request: Call
    """What it runs."""
    origin: str | None = Field(default=None, max_length=64)
    """The dialect in which it was made, for people: sep-1686, 2025-11-25, 2026-07-28."""
    plain: bool | None = None
    """True for an ordinary call that nobody asked to be a task: it is not listed to clients."""
    retention: Retention | None = None
    """How long it is kept; without it, until somebody deletes it. A task made by hand is then kept as long as its tool
    says."""
    call: str | None = Field(default=None, max_length=64)
    """Hash of session and request id, so that a cancel notification on any replica finds it."""
    created_at: Time | None = None
    """When the client asked. Far older than metadata.creationTimestamp means restored from a backup: never run."""
    parent: str | None = Field(default=None, max_length=253)
    """Name of the task that started this one."""
    cancel: Cancel | None = None
    """Set it to stop the work: kubectl patch mct NAME --type merge -p '{"spec":{"cancel":{}}}'"""


class JobRef(Model):
    """The Job that runs the present attempt; only its pod may report."""

    name: str
    """Its name."""
    uid: str
    """Its uid."""


class Progress(Model):
    """How far the work is, as its worker last said."""

    progress: float
    """How much is done, in the worker's own unit."""
    total: float | None = None
    """How much there is in all, if known."""
    message: str | None = Field(default=None, max_length=4096)
    """What is being done."""
    text: str | None = None
    """The same in one line for people, as kubectl get shows it."""


class Input(Model):
    """One question to the requestor."""

    request: AnyObject
    """The MCP request that asks it: method and params."""
    asked_at: Time | None = None
    """When it was asked."""
    response: AnyObject | None = None
    """The answer, once there is one."""


class ResultRef(Model):
    """Where the result is; never the result itself. Naming it here is what completes the task."""

    name: str | None = None
    """The MCPTaskResult that holds it."""
    uid: str | None = None
    """The uid of that MCPTaskResult."""
    uri: str | None = None
    """Where a larger one lies in the object store."""
    size: int = Field(ge=0)
    """Bytes of its JSON text in UTF-8."""
    sha256: str = Field(max_length=64)
    """SHA-256 of that text, in hex."""
    is_error: bool = False
    """Whether the tool's result says isError."""


class TaskError(Model):
    """The JSON-RPC error of a failed task."""

    code: int
    """The JSON-RPC code."""
    message: str
    """What went wrong."""
    data: AnyObject | None = None
    """More about it."""


class Condition(Model):
    """One of Queued, Started, Finished."""

    type: Literal["Queued", "Started", "Finished"]
    """Queued: the task waits for its turn. Started: its Job exists. Finished: it has ended."""
    status: Literal["True", "False", "Unknown"]
    """Whether the condition holds."""
    reason: str = Field(max_length=256)
    """Why, in one CamelCase word."""
    message: str = ""
    """Why, for people."""
    last_transition_time: Time
    """When the status of the condition last changed."""


class TaskStatus(Model):
    """Where the task is. One that nobody has looked at yet is submitted."""

    state: State = State.SUBMITTED
    """submitted, working, input_required; completed, failed, cancelled, unknown are ends and never change."""
    reason: str | None = Field(default=None, max_length=256)
    """Why, in one CamelCase word: ImagePull, OutOfMemory, DeadlineExceeded, ToolError, …"""
    message: str | None = Field(default=None, max_length=8192)
    """Why, for people."""
    started_at: Time | None = None
    """When the work began to run."""
    finished_at: Time | None = None
    """When it ended."""
    expires_at: Time | None = None
    """When the task and its result are deleted."""
    job: JobRef | None = None
    """What runs it."""
    attempt: int | None = Field(default=None, ge=1)
    """How many Jobs have been made for it; each is one attempt."""
    progress: Progress | None = None
    """How far it is."""
    inputs: Annotated[dict[str, Input], Field(max_length=32)] | None = None
    """Questions to the requestor, by key."""
    result: ResultRef | None = None
    """Where the result is."""
    error: TaskError | None = None
    """What a failed task answers."""
    last_updated_at: Time | None = None
    """When anything that a client can see last changed."""
    conditions: (
        Annotated[
            list[Condition],
            Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
        ]
        | None
    ) = None
    """Queued, Started, Finished."""


class MCPTask(Model):
    """One durable MCP request: a tool call that outlives the connection that asked for it."""

    api_version: str = TASK.api_version
    kind: Literal["MCPTask"] = "MCPTask"
    metadata: Metadata = Metadata()
    spec: TaskSpec
    """What to run, for whom, and how long to keep it."""
    status: Annotated[TaskStatus | None, Field(json_schema_extra={"default": {}})] = None
    """Where it is; written by mcptasks."""
