"""MCPTool: what a platform team offers to agents. The docstrings are what ``kubectl explain mcptool`` prints."""

from typing import Annotated, Any, Literal

from pydantic import Field

from mcptasks_crds.kinds import TOOL
from mcptasks_crds.model import Metadata, Model
from mcptasks_crds.task import AnyObject, Time
from mcptasks_crds.times import DURATION_PATTERN, RATE_PATTERN

Duration = Annotated[str, Field(pattern=DURATION_PATTERN, max_length=32)]
Rate = Annotated[str, Field(pattern=RATE_PATTERN, max_length=32)]


class ToolRetention(Model):
    """How long results are kept."""

    default: Duration | None = "1h"
    """When the client does not say, counted from the end of the task."""
    max: Duration | None = None
    """The longest that a client may ask for; more is cut to it. Without it a client may ask for ever."""


class Timeouts(Model):
    """When to give up."""

    start: Duration = "5m"
    """How long the pod may take until the tool runs: scheduling and image pull."""
    run: Duration = "24h"
    """How long the tool may run."""


class Retries(Model):
    """Whether to try again what was interrupted. Each attempt is a new Job."""

    limit: int = Field(default=0, ge=0, le=10)
    """How many times at most."""
    on: list[Literal["Disrupted"]] = ["Disrupted"]
    """Disrupted: evicted, drained, pre-empted, or its node was lost."""


class Concurrency(Model):
    """How many tasks of the tool run at once; the others wait as submitted, first come first served."""

    total: int | None = Field(default=None, ge=1)
    """In all."""
    per_owner: int | None = Field(default=None, ge=1)
    """Of one owner."""


class RateLimit(Model):
    """How often the tool may be called."""

    per_owner: Rate | None = None
    """By one owner, such as 60/minute. Above it a call is refused with the time to wait."""


class JobTemplate(Model):
    """The Job that runs a call."""

    template: AnyObject
    """A pod template. The container named tool, else the first, runs the call; it finds its arguments in the file
    /mcptasks/arguments.json and, top-level scalars, in ARG_NAME variables that its args may use as $(ARG_NAME)."""
    log_limit: int = Field(default=64 * 1024, ge=1, le=1024 * 1024)
    """Bytes of the log's end that become the result when the tool reports none."""


class ToolSpec(Model):
    """What the tool is to a client, and how it runs."""

    title: str | None = Field(default=None, max_length=256)
    """A name for people."""
    description: str = ""
    """What it does, for the model that may call it."""
    input_schema: AnyObject = {"type": "object"}
    """JSON Schema 2020-12 of the arguments."""
    output_schema: AnyObject | None = None
    """JSON Schema 2020-12 of structuredContent, if the tool gives it."""
    annotations: AnyObject | None = None
    """MCP's hints: readOnlyHint, destructiveHint, idempotentHint, openWorldHint."""
    task_support: Literal["forbidden", "optional", "required"] = "optional"
    """Whether a client may, or must, call it as a task."""
    retention: ToolRetention = ToolRetention()
    """How long results are kept."""
    poll_interval: Duration = "1s"
    """How often a client should ask for the state."""
    timeouts: Timeouts = Timeouts()
    """When to give up."""
    retries: Retries = Retries()
    """Whether to try again what was interrupted."""
    concurrency: Concurrency = Concurrency()
    """How many run at once."""
    rate_limit: RateLimit = RateLimit()
    """How often it may be called."""
    job: JobTemplate
    """The Job that runs a call."""


class ToolCondition(Model):
    """Ready: whether a call would get its Job."""

    type: Literal["Ready"]
    """Ready."""
    status: Literal["True", "False", "Unknown"]
    """True: the schemas are sound and the API server takes the pod."""
    reason: str = Field(max_length=256)
    """Valid, SchemaInvalid, TemplateInvalid, PodRefused, QuotaExceeded."""
    message: str = ""
    """What to mend."""
    observed_generation: int | None = None
    """The generation that was looked at."""
    last_transition_time: Time
    """When the status last changed."""


class ToolStatus(Model):
    """What mcptasks knows of the tool."""

    conditions: (
        Annotated[
            list[ToolCondition],
            Field(json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]}),
        ]
        | None
    ) = None
    """Ready."""
    active: int | None = None
    """Tasks that have a Job now."""
    queued: int | None = None
    """Tasks that wait for their turn."""


class MCPTool(Model):
    """A tool that agents may call; each call runs as a Kubernetes Job."""

    api_version: str = TOOL.api_version
    kind: Literal["MCPTool"] = "MCPTool"
    metadata: Metadata = Metadata()
    spec: ToolSpec
    """What the tool is to a client, and how it runs."""
    status: ToolStatus | None = None
    """What mcptasks knows of it; written by mcptasks."""


def tool_container(template: dict[str, Any]) -> dict[str, Any] | None:
    """The container of a pod template that runs the call: the one named ``tool``, else the first, else None."""
    containers: list[dict[str, Any]] = (template.get("spec") or {}).get("containers") or []
    return next((c for c in containers if c.get("name") == "tool"), containers[0] if containers else None)
