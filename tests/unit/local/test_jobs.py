"""Decisions about Jobs, without pods that run."""

from typing import Any

import pytest

from mcptasks_local.errors import Object
from mcptasks_local.jobs import Note, Step, controller_of, pod_labels, pod_of, step
from mcptasks_local.pod_status import stamp

NOW = 1_800_000_000.0


def a_job(status: Object | None = None, **spec: Any) -> Object:
    meta = {"name": "j", "namespace": "default", "uid": "job-uid"}
    full = {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": []}}, **spec}
    return {"metadata": meta, "spec": full, "status": status or {}}


def a_pod(name: str, phase: str, *, deleted: bool = False, ended: float = NOW, ready: bool = False) -> Object:
    meta: Object = {"name": name, "uid": name} | ({"deletionTimestamp": stamp(NOW)} if deleted else {})
    over = {"containerStatuses": [{"state": {"terminated": {"finishedAt": stamp(ended)}}}]}
    conditions = [{"type": "Ready", "status": "True"}] if ready else []
    status = {"phase": phase, "conditions": conditions, **(over if phase in ("Failed", "Succeeded") else {})}
    return {"metadata": meta, "status": status}


def types(do: Step) -> list[tuple[str, str]]:
    assert do.status is not None
    return [(c["type"], c["reason"]) for c in do.status["conditions"] if c["status"] == "True"]


def test_a_new_job_makes_its_pod_and_counts_it() -> None:
    do = step(a_job(), [], NOW)
    assert do.make == 1
    assert do.status == {
        "active": 1, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}, "startTime": "2027-01-15T08:00:00Z"
    }  # fmt: skip


def test_a_pod_that_was_made_before_a_crash_is_not_made_again() -> None:
    do = step(a_job(), [a_pod("p", "Pending")], NOW)
    assert do.make == 0
    assert do.status is not None
    assert do.status["active"] == 1


def test_nothing_new_is_nothing_to_do() -> None:
    first = step(a_job(), [], NOW)
    assert step(a_job(first.status), [a_pod("p", "Pending")], NOW + 9) == Step()


def test_ready_pods_are_counted() -> None:
    do = step(a_job(), [a_pod("p", "Running", ready=True)], NOW)
    assert do.status is not None
    assert do.status["ready"] == 1


def test_success_is_two_conditions_in_kubernetes_order() -> None:
    do = step(a_job({"active": 1, "startTime": stamp(NOW)}), [a_pod("p", "Succeeded")], NOW + 3)
    assert types(do) == [("SuccessCriteriaMet", "CompletionsReached"), ("Complete", "CompletionsReached")]
    assert do.status is not None
    assert (do.status["succeeded"], do.status.get("active"), do.status.get("failed")) == (1, None, None)
    assert do.status["completionTime"] == stamp(NOW + 3)
    assert do.notes == [Note("Completed", "Job completed")]


def test_a_failure_beyond_the_limit_is_two_conditions_and_no_completion_time() -> None:
    do = step(a_job({"active": 1, "startTime": stamp(NOW)}), [a_pod("p", "Failed")], NOW)
    assert types(do) == [("FailureTarget", "BackoffLimitExceeded"), ("Failed", "BackoffLimitExceeded")]
    assert do.make == 0
    assert do.status is not None
    assert do.status["failed"] == 1
    assert "completionTime" not in do.status
    assert do.notes == [Note("BackoffLimitExceeded", "Job has reached the specified backoff limit", warning=True)]


def test_a_pod_that_vanished_is_a_failed_one_and_not_run_again() -> None:
    do = step(a_job({"active": 1, "startTime": stamp(NOW)}), [], NOW)
    assert do.make == 0
    assert types(do)[-1] == ("Failed", "BackoffLimitExceeded")


def test_a_pod_told_to_stop_fails_the_job_at_once_but_its_end_is_waited_for() -> None:
    do = step(a_job({"active": 1, "startTime": stamp(NOW)}), [a_pod("p", "Running", deleted=True)], NOW)
    assert types(do) == [("FailureTarget", "BackoffLimitExceeded")]
    assert do.status is not None
    assert (do.status["failed"], do.status["terminating"]) == (1, 1)
    # Even if it then exits with 0.
    done = step(a_job(do.status), [a_pod("p", "Succeeded", deleted=True)], NOW)
    assert types(done)[-1] == ("Failed", "BackoffLimitExceeded")
    assert types(step(a_job(do.status), [], NOW))[-1] == ("Failed", "BackoffLimitExceeded")


def test_retries_wait_longer_with_each_failure() -> None:
    status = {"active": 1, "startTime": stamp(NOW)}
    first = step(a_job(status, backoffLimit=2), [a_pod("a", "Failed")], NOW + 1)
    assert (first.make, first.again) == (0, 9)
    again = step(a_job(first.status, backoffLimit=2), [a_pod("a", "Failed")], NOW + 10)
    assert again.make == 1
    both = [a_pod("a", "Failed"), a_pod("b", "Failed", ended=NOW + 11)]
    second = step(a_job(again.status, backoffLimit=2), both, NOW + 11)
    assert (second.make, second.again) == (0, 20)
    third = [*both, a_pod("c", "Failed", ended=NOW + 40)]
    assert types(step(a_job(second.status, backoffLimit=2), third, NOW + 40))[-1][0] == "Failed"


def test_a_failed_pod_that_somebody_deleted_still_counts() -> None:
    status = {"active": 1, "failed": 1, "startTime": stamp(NOW)}
    do = step(a_job(status, backoffLimit=1), [a_pod("b", "Failed")], NOW)
    assert types(do)[-1] == ("Failed", "BackoffLimitExceeded")


def test_a_lost_pod_within_the_limit_is_replaced() -> None:
    assert step(a_job({"active": 1, "startTime": stamp(NOW)}, backoffLimit=1), [], NOW).make == 1


def test_a_deadline_ends_the_pod_then_the_job() -> None:
    job = a_job({"active": 1, "startTime": stamp(NOW)}, activeDeadlineSeconds=4)
    pod = a_pod("p", "Running")
    assert step(job, [pod], NOW + 3).again == 1
    due = step(job, [pod], NOW + 4)
    assert (types(due), due.end) == ([("FailureTarget", "DeadlineExceeded")], ["p"])
    stopping = step(a_job(due.status, activeDeadlineSeconds=4), [a_pod("p", "Running", deleted=True)], NOW + 5)
    assert stopping.end == []
    over = step(a_job(stopping.status, activeDeadlineSeconds=4), [], NOW + 6)
    assert types(over) == [("FailureTarget", "DeadlineExceeded"), ("Failed", "DeadlineExceeded")]
    assert over.status is not None
    assert over.status["failed"] == 1


def test_several_completions_run_side_by_side() -> None:
    job = a_job(completions=3, parallelism=2)
    assert step(job, [], NOW).make == 2
    status = {"active": 2, "startTime": stamp(NOW)}
    pods = [a_pod("a", "Succeeded"), a_pod("b", "Running")]
    more = step(a_job(status, completions=3, parallelism=2), pods, NOW)
    assert more.make == 1
    # A succeeded pod that was removed counts on, and is not taken for a lost one.
    rest = step(a_job(more.status, completions=3, parallelism=2), [a_pod("b", "Running"), a_pod("c", "Running")], NOW)
    assert (rest.make, rest.status) == (0, None)


def test_a_suspended_job_ends_its_pods_and_begins_anew_when_resumed() -> None:
    assert step(a_job(suspend=True), [], NOW).make == 0
    running = {"active": 1, "startTime": stamp(NOW)}
    held = step(a_job(running, suspend=True), [a_pod("p", "Running")], NOW)
    assert (held.end, types(held)) == (["p"], [("Suspended", "JobSuspended")])
    assert held.status is not None
    assert "startTime" not in held.status
    assert step(a_job(held.status), [a_pod("p", "Running", deleted=True)], NOW) == Step()
    # Not a failure, though the pod ended badly.
    resumed = step(a_job(held.status), [a_pod("p", "Failed", deleted=True)], NOW + 60)
    assert (resumed.make, types(resumed)) == (1, [])
    assert resumed.status is not None
    assert resumed.status["startTime"] == stamp(NOW + 60)
    assert [note.reason for note in held.notes + resumed.notes] == ["Suspended", "Resumed"]


def test_a_finished_job_is_deleted_after_its_time() -> None:
    done = [{"type": "Complete", "status": "True", "lastTransitionTime": stamp(NOW)}]
    job = a_job({"conditions": done}, ttlSecondsAfterFinished=10)
    assert step(job, [], NOW + 4) == Step(again=6)
    assert step(job, [], NOW + 10) == Step(delete=True)
    assert step(a_job({"conditions": done}), [], NOW + 10) == Step()


def test_a_job_that_is_being_deleted_is_left_alone() -> None:
    job = a_job()
    job["metadata"]["deletionTimestamp"] = stamp(NOW)
    assert step(job, [], NOW) == Step()


@pytest.mark.parametrize("name", ["j", "a" * 63])
def test_a_pod_is_named_labelled_and_owned_as_kubernetes_does_it(name: str) -> None:
    job = a_job()
    job["metadata"]["name"] = name
    job["spec"]["template"]["metadata"] = {"labels": {"mine": "1"}, "annotations": {"note": "x"}}
    pod = pod_of(job)
    assert pod["metadata"]["name"].startswith(name[:57] + "-")
    assert len(pod["metadata"]["name"]) <= 63
    assert pod["metadata"]["labels"] == {"mine": "1", **pod_labels(job)}
    assert pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == name
    assert pod["metadata"]["annotations"] == {"note": "x"}
    owner = controller_of(pod)
    assert owner is not None
    assert (owner["uid"], owner["kind"], owner["controller"]) == ("job-uid", "Job", True)
    assert controller_of({"metadata": {"ownerReferences": [{**owner, "controller": False}]}}) is None
