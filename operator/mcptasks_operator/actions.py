"""What `decide` can ask for. Each is one step; after it the task is looked at again."""

from dataclasses import dataclass

from mcptasks_crds.lifecycle import State
from mcptasks_crds.reasons import Reason
from mcptasks_operator.observe import Exit, JobState, PodState


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing to do before ``until`` (epoch seconds), or before news if that is None."""

    until: float | None = None


@dataclass(frozen=True, slots=True)
class Queue:
    """Say why it waits: condition Queued."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Start:
    """Make the Job of an attempt."""

    attempt: int


@dataclass(frozen=True, slots=True)
class ToolMissing:
    """The tool is not known: fail, if the API server does not know it either."""


@dataclass(frozen=True, slots=True)
class Note:
    """Say what holds up its start, so that nobody has to guess until the time-out."""

    job: JobState
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Work:
    """It runs: working, since ``since``, by ``job``."""

    job: JobState
    since: float


@dataclass(frozen=True, slots=True)
class Collect:
    """The program ended by itself: complete the task with its result."""

    job: JobState
    pod: PodState
    exit: Exit


@dataclass(frozen=True, slots=True)
class Fail:
    """It failed, unless a result is there."""

    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class Retry:
    """Begin another attempt, unless a result is there."""

    attempt: int
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class End:
    """End it in a state that needs no result: cancelled, unknown."""

    state: State
    reason: Reason
    message: str


@dataclass(frozen=True, slots=True)
class JobMissing:
    """Its Job is not known any more: fail, if the API server does not know it either."""

    name: str


@dataclass(frozen=True, slots=True)
class FindPods:
    """The Job has ended and no pod is known: ask for them once."""

    job: JobState


@dataclass(frozen=True, slots=True)
class ReadEvents:
    """The Job has had no pod for as long as a start may take: ask why."""

    job: JobState


@dataclass(frozen=True, slots=True)
class DeleteJob:
    """The Job is not needed any more; its pod is stopped, or removed."""

    job: JobState


@dataclass(frozen=True, slots=True)
class Reschedule:
    """The retention was changed after the end: expire at ``expires`` (None = never)."""

    expires: float | None


Action = (
    Wait
    | Queue
    | Start
    | ToolMissing
    | Note
    | Work
    | Collect
    | Fail
    | Retry
    | End
    | JobMissing
    | FindPods
    | ReadEvents
    | DeleteJob
    | Reschedule
)
