"""The status of a pod, from what its containers are doing: a value made of values."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from mcptasks_local.errors import Object


def stamp(seconds: float) -> str:
    """Epoch seconds as Kubernetes writes times: RFC 3339, whole seconds."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class Waiting:
    """A container that has not started; ``reason`` is Kubernetes' word for why."""

    reason: str = "ContainerCreating"
    message: str = ""

    def state(self) -> Object:
        return {"waiting": {"reason": self.reason} | ({"message": self.message} if self.message else {})}


@dataclass(frozen=True, slots=True)
class Running:
    """A container that runs since ``started`` (epoch seconds)."""

    started: float

    def state(self) -> Object:
        return {"running": {"startedAt": stamp(self.started)}}


@dataclass(frozen=True, slots=True)
class Terminated:
    """A container that has ended; ``message`` is its termination message, or why it could not start."""

    code: int
    reason: str
    message: str
    started: float
    finished: float

    def state(self) -> Object:
        times = {"startedAt": stamp(self.started), "finishedAt": stamp(self.finished)}
        said = {"message": self.message} if self.message else {}
        return {"terminated": {"exitCode": self.code, "reason": self.reason, **said, **times}}


State = Waiting | Running | Terminated


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a pod was ended from outside: `status.reason` and `status.message`, and whether it was disrupted."""

    reason: str
    message: str
    disruption: str = ""


DEADLINE = Ending("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
SHUTDOWN = Ending(
    "Terminated", "Pod was terminated because the control plane was asked to end.", disruption="TerminationByKubelet"
)


def phase(pod: Object, states: Mapping[str, State], ending: Ending | None = None, *, stopped: bool = False) -> str:
    """Pending, Running, Succeeded or Failed; ``states`` by container name, init containers included.

    ``stopped``: what has not started by now never will.
    """
    first = [states[container["name"]] for container in pod["spec"].get("initContainers") or ()]
    main = [states[container["name"]] for container in pod["spec"]["containers"]]
    if any(isinstance(state, Terminated) and state.code for state in first):
        return "Failed"
    if stopped and any(isinstance(state, Waiting) for state in (*first, *main)):
        return "Failed"
    if all(isinstance(state, Terminated) for state in main):
        good = ending is None and not any(state.code for state in main if isinstance(state, Terminated))
        return "Succeeded" if good else "Failed"
    if any(isinstance(state, Running | Terminated) for state in main):
        return "Running"
    return "Pending"


def unscheduled(pod: Object, now: float) -> Object:
    """The status of a pod for which there is no room."""
    full = {"reason": "Unschedulable", "message": "0/1 nodes are available: 1 Too many pods."}
    return {"phase": "Pending", "conditions": [_condition(pod, "PodScheduled", False, now, **full)]}


def status(
    pod: Object, states: Mapping[str, State], now: float, ending: Ending | None = None, *, stopped: bool = False
) -> Object:
    """The whole status of a pod that has its place."""
    word, spec = phase(pod, states, ending, stopped=stopped), pod["spec"]
    first, main = spec.get("initContainers") or (), spec["containers"]
    initialized = all(isinstance(states[item["name"]], Terminated) for item in first) and word != "Failed"
    ready = word == "Running" and all(isinstance(states[item["name"]], Running) for item in main)
    over = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}.get(word, "")
    why = {} if ready else {"reason": over or "ContainersNotReady"}
    if not ready and not over:
        unready = " ".join(item["name"] for item in main if not isinstance(states[item["name"]], Running))
        why["message"] = f"containers with unready status: [{unready}]"
    started_all = any(isinstance(state, Running | Terminated) for state in states.values())
    conditions = [
        _condition(pod, "PodReadyToStartContainers", started_all and not over, now),
        _condition(pod, "Initialized", initialized, now, **({"reason": over} if word == "Succeeded" else {})),
        _condition(pod, "Ready", ready, now, **why),
        _condition(pod, "ContainersReady", ready, now, **why),
        _condition(pod, "PodScheduled", True, now),
    ]
    if ending is not None and ending.disruption:
        told = {"reason": ending.disruption, "message": ending.message}
        conditions.insert(0, _condition(pod, "DisruptionTarget", True, now, **told))
    old = pod.get("status") or {}
    out: Object = {
        "phase": word,
        "conditions": conditions,
        "hostIP": "127.0.0.1",
        "podIP": "127.0.0.1",
        "startTime": old.get("startTime") or stamp(now),
        "qosClass": "BestEffort",
    }
    if ending is not None:
        out |= {"reason": ending.reason, "message": ending.message}
    if first:
        out["initContainerStatuses"] = [_container(item, states[item["name"]], first=True) for item in first]
    return out | {"containerStatuses": [_container(item, states[item["name"]], first=False) for item in main]}


def _container(container: Object, state: State, *, first: bool) -> Object:
    running = isinstance(state, Running)
    done = isinstance(state, Terminated) and state.code == 0
    return {
        "name": container["name"],
        "image": container.get("image") or "",
        "imageID": "",
        "ready": done if first else running,
        "started": running,
        "restartCount": 0,
        "state": state.state(),
        "lastState": {},
    }


def _condition(pod: Object, kind: str, holds: bool, now: float, **said: str) -> Object:
    """A condition whose transition time moves with its status only."""
    word = "True" if holds else "False"
    for old in (pod.get("status") or {}).get("conditions") or ():
        if old["type"] == kind and old["status"] == word:
            return {"type": kind, "status": word, "lastTransitionTime": old["lastTransitionTime"], **said}
    return {"type": kind, "status": word, "lastTransitionTime": stamp(now), **said}
