from typing import Any

import pytest

from mcptasks_crds.reasons import Reason
from mcptasks_crds.times import render
from mcptasks_operator.observe import Exit, read_pod
from mcptasks_operator.pods import LOST_AFTER, Exited, Lost, Running, Starting, Stopping, verdict

from .cluster import START
from .objects import condition, job, pod, pod_object, running, terminated, waiting

NOW = START + 20


def stopping(at: float = START + 4, grace: int = 5) -> dict[str, Any]:
    """A pod told to stop at ``at``."""
    return {"deletionTimestamp": render(at + grace), "deletionGracePeriodSeconds": grace}


def test_a_program_that_ends_by_itself_counts() -> None:
    seen = verdict(pod(state=terminated(3, reason="Error")), job(), NOW)
    assert seen == Exited(Exit(3, "Error", "", START + 5))


def test_a_running_program_runs_since_its_container_says() -> None:
    assert verdict(pod(state=running(START + 2), status={"phase": "Running"}), job(), NOW) == Running(START + 2)


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (terminated(137, reason="OOMKilled"), Reason.OUT_OF_MEMORY),
        (terminated(128, reason="StartError", message="no such file"), Reason.START_ERROR),
        (terminated(127, reason="ContainerCannotRun"), Reason.START_ERROR),
        (terminated(137, reason="ContainerStatusUnknown"), Reason.NODE_LOST),
    ],
)
def test_some_ends_are_not_the_works_fault(state: dict[str, Any], reason: Reason) -> None:
    seen = verdict(pod(state=state), job(), NOW)
    assert isinstance(seen, Lost)
    assert seen.reason is reason


@pytest.mark.fault("E24")
def test_exit_0_is_no_success_if_a_child_ran_out_of_memory() -> None:
    state = terminated(0, reason="OOMKilled")
    assert verdict(pod(state=state, status={"phase": "Succeeded"}), job(), NOW) == Lost(
        Reason.OUT_OF_MEMORY, "it was killed at its memory limit (exit code 0)"
    )


@pytest.mark.fault("E16")
def test_exit_0_after_an_eviction_is_no_success() -> None:
    status = {"phase": "Succeeded", "conditions": [condition("DisruptionTarget", "EvictionByEvictionAPI", START + 4)]}
    seen = verdict(pod(state=terminated(0), status=status, **stopping()), job(), NOW)
    assert seen == Lost(Reason.EVICTED, "EvictionByEvictionAPI")


def test_exit_0_in_the_second_of_a_deletion_is_an_interruption() -> None:
    seen = verdict(pod(state=terminated(0, at=START + 4), **stopping(START + 4)), job(), NOW)
    assert isinstance(seen, Lost)
    assert seen.reason is Reason.INTERRUPTED


def test_an_end_before_the_deletion_counts() -> None:
    seen = verdict(pod(state=terminated(0, at=START + 3), **stopping(START + 4)), job(), NOW)
    assert isinstance(seen, Exited)


def test_an_end_that_was_seen_before_the_deletion_counts_though_the_seconds_tie() -> None:
    before = pod(state=terminated(0, at=START + 4))
    told = read_pod(pod_object(state=terminated(0, at=START + 4), **stopping(START + 4))).after(before)
    assert isinstance(verdict(told, job(), NOW), Exited)


def test_another_pod_of_the_same_name_was_not_seen_before() -> None:
    before = pod(state=terminated(0, at=START + 4), uid="other")
    told = read_pod(pod_object(state=terminated(0, at=START + 4), **stopping(START + 4))).after(before)
    assert isinstance(verdict(told, job(), NOW), Lost)


def test_a_pod_past_its_jobs_deadline_says_so_before_the_job_does() -> None:
    late = pod(state=running(), status={"phase": "Running"}, **stopping(START + 99))
    seen = verdict(late, job(status={"startTime": render(START)}), START + 99)
    assert seen == Lost(Reason.DEADLINE_EXCEEDED, "it ran longer than its Job may")
    early = pod(state=running(), status={"phase": "Running"}, **stopping(START + 50))
    assert isinstance(verdict(early, job(status={"startTime": render(START)}), START + 50), Stopping)


def test_the_jobs_word_on_its_deadline_counts() -> None:
    failed = job(status={"conditions": [condition("FailureTarget", "DeadlineExceeded")]})
    seen = verdict(pod(state=terminated(0), **stopping()), failed, NOW)
    assert isinstance(seen, Lost)
    assert seen.reason is Reason.DEADLINE_EXCEEDED


def test_a_pod_on_a_lost_node_is_given_up_after_its_grace() -> None:
    gone_by = START + 9
    lost = pod(
        state=running(),
        status={"phase": "Running", "conditions": [condition("DisruptionTarget", "DeletionByTaintManager", START + 4)]},
        **stopping(),
    )
    assert verdict(lost, job(), gone_by + LOST_AFTER - 1) == Stopping(gone_by + LOST_AFTER)
    seen = verdict(lost, job(), gone_by + LOST_AFTER)
    assert isinstance(seen, Lost)
    assert seen.reason is Reason.NODE_LOST


def test_a_disruption_without_a_deletion_waits_for_news() -> None:
    status = {"phase": "Running", "conditions": [condition("DisruptionTarget", "PreemptionByScheduler")]}
    assert verdict(pod(state=running(), status=status), job(), NOW) == Stopping(None)


def test_a_pod_deleted_by_the_collector_of_dead_nodes_is_lost() -> None:
    status = {"phase": "Failed", "conditions": [condition("DisruptionTarget", "DeletionByPodGC")]}
    seen = verdict(pod(state=running(), status=status, **stopping()), job(), NOW)
    assert isinstance(seen, Lost)
    assert seen.reason is Reason.NODE_LOST


@pytest.mark.parametrize(
    ("said", "reason"),
    [("DeadlineExceeded", Reason.DEADLINE_EXCEEDED), ("Evicted", Reason.EVICTED), ("NodeLost", Reason.NODE_LOST)],
)
def test_the_pods_own_reason_goes_before_the_exit_code(said: str, reason: Reason) -> None:
    status = {"phase": "Failed", "reason": said, "message": "usage 12Mi"}
    seen = verdict(pod(state=terminated(137, reason="Error"), status=status), job(), NOW)
    assert seen == Lost(reason, f"{said}: usage 12Mi")


def test_a_pod_that_the_kubelet_refused_could_not_start() -> None:
    status = {"phase": "Failed", "reason": "OutOfcpu", "message": "Node didn't have enough resource"}
    seen = verdict(pod(status=status), job(), NOW)
    assert seen == Lost(Reason.START_ERROR, "OutOfcpu: Node didn't have enough resource")


def test_a_failed_init_container_is_named() -> None:
    ended = {"name": "fetch", "state": {"terminated": {"exitCode": 2, "message": "no route"}}}
    status = {"phase": "Failed", "initContainerStatuses": [ended]}
    seen = verdict(pod(state=waiting("PodInitializing"), status=status), job(), NOW)
    assert seen == Lost(Reason.START_ERROR, "init container fetch exited with 2: no route")


@pytest.mark.fault("E1")
@pytest.mark.parametrize(
    ("said", "reason", "hopeless"),
    [
        ("ErrImagePull", Reason.IMAGE_PULL, False),
        ("ImagePullBackOff", Reason.IMAGE_PULL, False),
        ("InvalidImageName", Reason.IMAGE_PULL, True),
        ("CreateContainerConfigError", Reason.START_ERROR, False),
        ("ContainerCreating", Reason.START_TIMEOUT, False),
    ],
)
def test_what_holds_up_a_start_has_a_reason(said: str, reason: Reason, hopeless: bool) -> None:
    seen = verdict(pod(state=waiting(said, "details")), job(), NOW)
    assert seen == Starting(reason, f"{said}: details", hopeless)


def test_an_init_containers_image_holds_up_the_start_too() -> None:
    status = {"initContainerStatuses": [{"name": "fetch", "state": waiting("ErrImagePull", "no such image")}]}
    seen = verdict(pod(state=waiting("PodInitializing"), status=status), job(), NOW)
    assert seen == Starting(Reason.IMAGE_PULL, "ErrImagePull: no such image")


def test_a_pod_that_fits_no_node_says_so() -> None:
    unfit = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes fit"}
    assert verdict(pod(status={"conditions": [unfit]}), job(), NOW) == Starting(Reason.UNSCHEDULABLE, "0/3 nodes fit")


def test_a_pod_without_any_status_is_starting() -> None:
    assert verdict(pod(), job(), NOW) == Starting(Reason.START_TIMEOUT, "the pod is Pending")
