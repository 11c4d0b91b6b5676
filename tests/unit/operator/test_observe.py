import dataclasses

import pytest

from mcptasks_crds.times import render
from mcptasks_operator.observe import later, read_job, read_pod, read_tool

from .cluster import START
from .objects import condition, job_object, pod_object, terminated, tool_object


def test_versions_are_compared_as_numbers() -> None:
    assert later("10", "9")
    assert not later("9", "9")
    assert later("x", "9")


def test_a_new_job_has_neither_begun_nor_ended() -> None:
    job = read_job(job_object())
    assert (job.task_uid, job.attempt, job.created, job.begun, job.ended, job.failure) == (
        "task-1",
        1,
        START,
        None,
        False,
        None,
    )


def test_a_job_that_will_fail_has_not_ended() -> None:
    job = read_job(job_object(status={"conditions": [condition("FailureTarget", "BackoffLimitExceeded")]}))
    assert (job.ended, job.failure) == (False, "BackoffLimitExceeded")


def test_a_condition_that_is_false_is_none() -> None:
    lapsed = {**condition("Failed", "X"), "status": "False"}
    assert read_job(job_object(status={"conditions": [lapsed]})).failure is None


def test_what_was_found_out_about_a_job_survives_its_events() -> None:
    old = dataclasses.replace(read_job(job_object()), asked=START, refusal="no", podless=True)
    new = read_job(job_object()).with_findings_of(old)
    assert (new.asked, new.refusal, new.podless) == (START, "no", True)
    other = read_job(job_object(uid="another")).with_findings_of(old)
    assert other.asked is None
    assert read_job(job_object()).with_findings_of(None).asked is None


def test_a_pod_is_its_jobs_and_its_containers() -> None:
    pod = read_pod(pod_object(state=terminated(3, message="why")))
    assert pod.job_uid == "job-1-1"
    assert pod.container == "tool"
    assert pod.exit is not None
    assert (pod.exit.code, pod.exit.message, pod.exit.finished) == (3, "why", START + 5)
    assert pod.log_as_message


def test_a_pod_that_nobody_controls_belongs_to_no_job() -> None:
    assert read_pod(pod_object(ownerReferences=[{"uid": "x"}])).job_uid == ""
    assert read_pod(pod_object(ownerReferences=None)).job_uid == ""


def test_the_first_container_runs_the_call_if_none_is_named_tool() -> None:
    raw = pod_object()
    raw["spec"]["containers"] = [{"name": "main"}, {"name": "sidecar"}]
    raw["status"]["containerStatuses"] = [
        {"name": "sidecar", "state": terminated(1)},
        {"name": "main", "state": terminated(0)},
    ]
    pod = read_pod(raw)
    assert pod.container == "main"
    assert pod.exit is not None
    assert pod.exit.code == 0


def test_a_container_whose_status_was_lost_ended_when_its_pod_had_to_go() -> None:
    state = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}}
    pod = read_pod(pod_object(state=state, deletionTimestamp=render(START + 9), deletionGracePeriodSeconds=5))
    assert pod.exit is not None
    assert pod.exit.finished == START + 9
    assert pod.told_at == START + 4


def test_a_pod_without_our_label_is_none_of_ours() -> None:
    with pytest.raises(KeyError):
        read_pod(pod_object(labels={}))


def test_a_tool_knows_which_of_its_generations_was_looked_at() -> None:
    ready = {**condition("Ready", "Valid"), "observedGeneration": 1}
    tool = read_tool(tool_object(status={"conditions": [ready], "active": 2, "queued": 3}))
    assert (tool.looked_at, tool.active, tool.queued) == (1, 2, 3)
    assert read_tool(tool_object()).looked_at is None
