"""How long unfinished tasks have been where they are: what tells a task that is forgotten from one that waits its turn.

Each state that is no end has an age, so that none can hold a task for ever without a signal.
"""

from mcptasks_crds.lifecycle import State
from mcptasks_crds.names import job_name
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.times import parse, seconds
from mcptasks_crds.tool import Timeouts
from mcptasks_operator.slots import Key
from mcptasks_operator.store import Store


def since(task: TaskRecord) -> float:
    """Epoch seconds at which an unfinished task came into its state."""
    match task.state:
        case State.SUBMITTED:
            return task.created
        case State.INPUT_REQUIRED:
            questions = (task.inputs or {}).values()
            asked = [parse(q["askedAt"]) for q in questions if "askedAt" in q and "response" not in q]
            return min(asked, default=task.updated or task.created)
        case _:
            return task.started or task.created


def oldest(store: Store, now: float) -> dict[tuple[str, str, State], float]:
    """The age in seconds of the oldest unfinished task, by the tool's namespace and name, and state."""
    ages: dict[tuple[str, str, State], float] = {}
    for task in store.unfinished():
        place = task.namespace, task.tool, task.state
        ages[place] = max(ages.get(place, 0.0), now - since(task))
    return ages


def overdue(store: Store, now: float) -> dict[Key, float]:
    """By how many seconds the longest attempt of each tool has outlived start and run time-out; only tools with one.

    An attempt counts from when its Job was taken up; one that is suspended, by a queue such as Kueue, does not. Where
    the Job is lost, which would itself be a reason to end the task, it is the task's start that counts.
    """
    late: dict[Key, float] = {}
    patience: dict[Key, float] = {}
    for task in store.unfinished():
        place = task.namespace, task.tool
        job = store.job(task.uid, job_name(task.uid, max(task.attempt, 1)))
        if job is not None and job.suspended:
            continue
        begun = task.started if job is None else job.begun or job.created
        if begun is None:
            continue  # it waits for its turn
        if place not in patience:
            tool = store.tool(place)
            timeouts = tool.spec.timeouts if tool else Timeouts()
            patience[place] = seconds(timeouts.start) + seconds(timeouts.run)
        if (by := now - begun - patience[place]) > 0:
            late[place] = max(late.get(place, 0.0), by)
    return late
