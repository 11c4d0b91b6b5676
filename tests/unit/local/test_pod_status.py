from mcptasks_local.errors import Object
from mcptasks_local.pod_status import DEADLINE, SHUTDOWN, Running, State, Terminated, Waiting, status, unscheduled

NOW = 1_800_000_000.0
POD: Object = {
    "metadata": {"name": "p"},
    "spec": {"initContainers": [{"name": "first", "image": "i"}], "containers": [{"name": "tool", "image": "t"}]},
}
GOOD = Terminated(0, "Completed", "", NOW, NOW)
BAD = Terminated(3, "Error", "why", NOW, NOW + 1)


def shape(found: Object) -> tuple[str, dict[str, tuple[str, str]]]:
    return found["phase"], {c["type"]: (c["status"], c.get("reason", "")) for c in found["conditions"]}


def test_a_pod_without_a_place_is_pending_and_says_why() -> None:
    assert unscheduled(POD, NOW)["conditions"][0] | {"lastTransitionTime": ""} == {
        "type": "PodScheduled",
        "status": "False",
        "lastTransitionTime": "",
        "reason": "Unschedulable",
        "message": "0/1 nodes are available: 1 Too many pods.",
    }


def test_init_containers_come_first() -> None:
    phase, conditions = shape(status(POD, {"first": Running(NOW), "tool": Waiting("PodInitializing")}, NOW))
    assert phase == "Pending"
    assert conditions["Initialized"][0] == "False"
    assert conditions["Ready"] == ("False", "ContainersNotReady")


def test_a_running_pod_is_ready() -> None:
    found = status(POD, {"first": GOOD, "tool": Running(NOW)}, NOW)
    phase, conditions = shape(found)
    assert phase == "Running"
    assert {kind for kind, (holds, _) in conditions.items() if holds == "True"} == {
        "PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"
    }  # fmt: skip
    container = found["containerStatuses"][0]
    assert container["state"] == {"running": {"startedAt": "2027-01-15T08:00:00Z"}}
    assert (container["ready"], container["started"], container["image"]) == (True, True, "t")
    assert found["initContainerStatuses"][0]["ready"] is True


def test_ends() -> None:
    good: dict[str, State] = {"first": GOOD, "tool": GOOD}
    phase, conditions = shape(status(POD, good, NOW))
    assert (phase, conditions["Ready"]) == ("Succeeded", ("False", "PodCompleted"))
    found = status(POD, {"first": GOOD, "tool": BAD}, NOW)
    assert shape(found)[0] == "Failed"
    assert found["containerStatuses"][0]["state"]["terminated"] == {
        "exitCode": 3,
        "reason": "Error",
        "message": "why",
        "startedAt": "2027-01-15T08:00:00Z",
        "finishedAt": "2027-01-15T08:00:01Z",
    }
    assert shape(status(POD, {"first": BAD, "tool": Waiting("PodInitializing")}, NOW))[0] == "Failed"


def test_an_end_from_outside_is_failed_even_with_exit_code_0() -> None:
    late = status(POD, {"first": GOOD, "tool": GOOD}, NOW, DEADLINE)
    assert (late["phase"], late["reason"]) == ("Failed", "DeadlineExceeded")
    disrupted = status(POD, {"first": GOOD, "tool": GOOD}, NOW, SHUTDOWN)
    assert shape(disrupted)[1]["DisruptionTarget"] == ("True", "TerminationByKubelet")


def test_what_was_stopped_before_it_started_has_failed() -> None:
    states: dict[str, State] = {"first": GOOD, "tool": Waiting()}
    assert shape(status(POD, states, NOW))[0] == "Pending"
    assert shape(status(POD, states, NOW, stopped=True))[0] == "Failed"


def test_a_transition_time_moves_with_its_condition_only() -> None:
    first = status(POD, {"first": GOOD, "tool": Running(NOW)}, NOW)
    then = status({**POD, "status": first}, {"first": GOOD, "tool": GOOD}, NOW + 60)
    times = {c["type"]: c["lastTransitionTime"] for c in then["conditions"]}
    assert times["PodScheduled"] == "2027-01-15T08:00:00Z"
    assert times["Ready"] == "2027-01-15T08:01:00Z"
    assert then["startTime"] == first["startTime"]
