from dataclasses import replace
from typing import Any

import pytest

from mcptasks_crds.lifecycle import State
from mcptasks_crds.names import job_name
from mcptasks_crds.reasons import Reason
from mcptasks_crds.record import TaskRecord
from mcptasks_crds.times import render
from mcptasks_operator.actions import (
    Collect,
    DeleteJob,
    End,
    Fail,
    FindPods,
    JobMissing,
    Note,
    Queue,
    ReadEvents,
    Reschedule,
    Retry,
    Start,
    ToolMissing,
    Wait,
    Work,
)
from mcptasks_operator.decide import LINGER, QUEUED_AFTER, Situation, Turn, decide
from mcptasks_operator.observe import Exit, JobState, PodState

from .cluster import START
from .objects import condition, ended, job, pod, running, task, terminated, tool_spec, waiting, working

NOW = START + 20
TOOL = tool_spec(timeouts={"start": "60s", "run": "2m"})
RETRYING = tool_spec(retries={"limit": 1})
EXIT_0 = Exit(0, "Completed", "", START + 5)


def seen(task: TaskRecord, job: JobState | None = None, *pods: PodState, **more: Any) -> Situation:
    more.setdefault("tool", TOOL)
    return Situation(task=task, jobs={job.name: job} if job else {}, pods=pods, **more)


def run(at: float = START + 2) -> PodState:
    return pod(state=running(at), status={"phase": "Running"})


# Before there is a Job


def test_a_new_task_gets_a_job() -> None:
    assert decide(seen(task()), NOW) == Start(1)


def test_a_task_that_is_being_deleted_is_left_alone() -> None:
    assert decide(seen(replace(task(), deleting=True), job()), NOW) == Wait()


def test_a_task_without_a_tool_is_checked_before_it_fails() -> None:
    assert decide(seen(task(), tool=None), NOW) == ToolMissing()


def test_a_task_from_a_backup_is_never_run() -> None:
    old = task(created=START - 700, stored=render(START))
    action = decide(seen(old), NOW)
    assert isinstance(action, End)
    assert (action.state, action.reason) == (State.UNKNOWN, Reason.RESTORED)
    late = task(created=START - 500, stored=render(START))
    assert decide(seen(late), NOW) == Start(1)


@pytest.mark.fault("E19")
def test_a_task_that_must_wait_says_so_once_and_not_at_once() -> None:
    full = Turn(False, "the tool runs 2 of at most 2 tasks")
    assert decide(seen(task(), turn=full), START) == Wait(START + QUEUED_AFTER)
    assert decide(seen(task(), turn=full), NOW) == Queue(Reason.CONCURRENCY_LIMIT, full.message)
    told = task(status={"conditions": [condition("Queued", "ConcurrencyLimit")]})
    assert decide(seen(told, turn=full), NOW) == Wait()
    assert decide(seen(told), NOW) == Start(1)


@pytest.mark.req("R-3.3")
def test_spec_cancel_ends_a_task_in_any_open_state() -> None:
    for status in (None, working(), {"state": "input_required"}):
        action = decide(seen(task(status=status, cancel={"reason": "not needed"}), job(), run()), NOW)
        assert action == End(State.CANCELLED, Reason.CANCELLED, "cancelled: not needed")
    assert decide(seen(task(cancel={})), NOW) == End(State.CANCELLED, Reason.CANCELLED, "cancelled")


# While it starts


def test_a_job_without_a_pod_is_asked_about_only_at_the_start_time_out() -> None:
    assert decide(seen(task(), job()), NOW) == Wait(START + 60)
    assert decide(seen(task(), job()), START + 60) == ReadEvents(job())


def test_a_busy_controller_manager_is_no_time_out() -> None:
    asked = replace(job(), asked=START + 60)
    assert decide(seen(task(), asked), START + 61) == Wait(START + 120)
    assert decide(seen(task(), asked), START + 120) == ReadEvents(asked)


def test_a_refused_pod_fails_with_what_was_said() -> None:
    refused = replace(job(), asked=START + 60, refusal="violates PodSecurity")
    assert decide(seen(task(), refused), START + 61) == Fail(Reason.POD_NOT_CREATED, "violates PodSecurity")


@pytest.mark.fault("E19")
def test_a_full_namespace_is_waited_for() -> None:
    full = replace(job(), asked=START + 60, refusal='pods "x" is forbidden: exceeded quota: ten')
    assert decide(seen(task(), full), START + 61) == Queue(Reason.QUOTA_EXCEEDED, full.refusal)
    told = task(status={"conditions": [condition("Queued", "QuotaExceeded")]})
    assert decide(seen(told, full), START + 61) == Wait(START + 120)


@pytest.mark.fault("E20")
def test_a_suspended_job_has_no_start_time_out() -> None:
    assert decide(seen(task(), replace(job(), suspended=True)), START + 9999) == Wait()


@pytest.mark.fault("E1", "E2")
def test_an_image_that_cannot_be_pulled_is_told_early_and_fails_late() -> None:
    stuck = pod(state=waiting("ImagePullBackOff", "not found"))
    assert decide(seen(task(), job(), stuck), START + 1) == Wait(START + 5)
    assert decide(seen(task(), job(), stuck), START + 6) == Note(
        job(), Reason.IMAGE_PULL, "ImagePullBackOff: not found"
    )
    known = task(status={"reason": "ImagePull"})
    assert decide(seen(known, job(), stuck), START + 6) == Wait(START + 60)
    assert decide(seen(known, job(), stuck), START + 60) == Fail(
        Reason.IMAGE_PULL, "nothing ran within 60s: ImagePullBackOff: not found"
    )


def test_a_name_that_is_no_image_fails_at_once() -> None:
    action = decide(seen(task(), job(), pod(state=waiting("InvalidImageName", "a b"))), START + 1)
    assert action == Fail(Reason.IMAGE_PULL, "InvalidImageName: a b")


def test_a_slow_start_without_a_reason_is_waited_for_and_then_a_time_out() -> None:
    slow = pod(state=waiting("ContainerCreating"))
    assert decide(seen(task(), job(), slow), START + 10) == Wait(START + 60)
    action = decide(seen(task(), job(), slow), START + 60)
    assert isinstance(action, Fail)
    assert action.reason is Reason.START_TIMEOUT


def test_without_its_tool_the_default_time_outs_hold() -> None:
    assert decide(seen(task(), job(), tool=None), NOW) == Wait(START + 300)


# While it runs


def test_a_running_pod_makes_its_task_working() -> None:
    assert decide(seen(task(), job(), run()), NOW) == Work(job(), START + 2)


def test_a_task_that_works_waits_for_its_time_out() -> None:
    at_work = task(status=working())
    assert decide(seen(at_work, job(), run()), NOW) == Wait(START + 2 + 120 + 1)
    assert decide(seen(at_work, job(), run()), START + 123) == Fail(Reason.DEADLINE_EXCEEDED, "it ran longer than 2m")


def test_a_second_attempt_is_recorded_when_it_runs() -> None:
    second = task(status={**working(), "attempt": 2, "job": None})
    again = pod(attempt=2, state=running(START + 9), status={"phase": "Running"})
    assert decide(seen(second, job(attempt=2), again), NOW) == Work(job(attempt=2), START + 9)


def test_a_question_does_not_stop_the_clock_nor_the_recording() -> None:
    asking = task(status={"state": "input_required"})
    assert decide(seen(asking, job(), run()), NOW) == Work(job(), START + 2)


# Its end


@pytest.mark.parametrize("status", [None, working(), {"state": "input_required"}])
def test_a_program_that_ended_is_collected_from_whatever_state(status: dict[str, Any] | None) -> None:
    done = pod(state=terminated(0))
    assert decide(seen(task(status=status), job(), done), NOW) == Collect(job(), done, EXIT_0)


def test_a_finished_job_before_its_pods_last_event_asks_for_the_pod_once() -> None:
    complete = job(status={"conditions": [condition("Complete", "Completed")]})
    assert decide(seen(task(), complete), NOW) == FindPods(complete)
    gone = replace(complete, podless=True)
    action = decide(seen(task(), gone), NOW)
    assert isinstance(action, Fail)
    assert action.reason is Reason.INTERRUPTED


def test_a_jobs_deadline_is_told_without_its_pod() -> None:
    late = job(status={"conditions": [condition("Failed", "DeadlineExceeded")]})
    action = decide(seen(task(), late), NOW)
    assert isinstance(action, Fail)
    assert action.reason is Reason.DEADLINE_EXCEEDED


def test_a_pod_of_another_job_is_none_of_it() -> None:
    assert decide(seen(task(), job(), pod(attempt=2, state=terminated(0))), NOW) == Wait(START + 60)


def test_of_two_pods_the_one_that_ended_counts() -> None:
    done, other = pod(state=terminated(0)), replace(run(), name="x", uid="x")
    assert isinstance(decide(seen(task(), job(), other, done), NOW), Collect)
    assert isinstance(decide(seen(task(), job(), done, other), NOW), Collect)


@pytest.mark.fault("E16")
def test_a_disruption_is_tried_again_only_if_the_tool_says_so() -> None:
    status = {"phase": "Failed", "conditions": [condition("DisruptionTarget", "EvictionByEvictionAPI")]}
    evicted = pod(state=terminated(137, reason="Error"), status=status)
    assert decide(seen(task(status=working()), job(), evicted), NOW) == Fail(Reason.EVICTED, "EvictionByEvictionAPI")
    again = decide(seen(task(status=working()), job(), evicted, tool=RETRYING), NOW)
    assert again == Retry(2, Reason.EVICTED, "EvictionByEvictionAPI")
    second = pod(attempt=2, state=terminated(137, reason="Error"), status=status)
    spent = seen(task(status=working(2)), job(attempt=2), second, tool=RETRYING)
    assert decide(spent, NOW) == Fail(Reason.EVICTED, "EvictionByEvictionAPI")
    assert isinstance(decide(seen(task(status=working()), job(), evicted, tool=None), NOW), Fail)


def test_an_evicted_program_is_waited_for_before_another_begins() -> None:
    status = {"phase": "Running", "conditions": [condition("DisruptionTarget", "EvictionByEvictionAPI", START + 15)]}
    leaving = pod(state=running(), status=status, deletionTimestamp=render(START + 20), deletionGracePeriodSeconds=5)
    action = decide(seen(task(status=working()), job(), leaving, tool=RETRYING), START + 16)
    assert action == Wait(START + 30)


def test_out_of_memory_is_not_tried_again() -> None:
    killed = pod(state=terminated(137, reason="OOMKilled"))
    action = decide(seen(task(status=working()), job(), killed, tool=RETRYING), NOW)
    assert isinstance(action, Fail)
    assert action.reason is Reason.OUT_OF_MEMORY


def test_the_job_of_a_lost_attempt_goes_before_the_next_is_made() -> None:
    second = task(status={"state": "working", "attempt": 2})
    situation = seen(second, job())
    assert decide(situation, NOW) == DeleteJob(job())
    assert decide(seen(second, replace(job(), deleting=True)), NOW) == Start(2)


# What somebody else took away


def test_a_recorded_job_that_is_not_known_is_checked_before_the_task_fails() -> None:
    assert decide(seen(task(status=working())), NOW) == JobMissing(job().name)


def test_a_job_that_was_seen_and_is_gone_is_not_made_again() -> None:
    gone = frozenset({job_name("task-1", 1)})
    assert decide(seen(task(), gone=gone), NOW) == JobMissing(job().name)


def test_a_job_that_is_being_deleted_waits_for_its_pods_end() -> None:
    assert decide(seen(task(status=working()), replace(job(), deleting=True)), START + 999) == Wait()


# After the end


@pytest.mark.fault("P12", "E14")
@pytest.mark.parametrize("state", ["cancelled", "failed", "unknown"])
def test_a_task_that_has_ended_stops_its_job(state: str) -> None:
    assert decide(seen(task(status=ended(state)), job(), run()), NOW) == DeleteJob(job())


@pytest.mark.fault("P14")
def test_a_cancel_before_the_job_was_seen_stops_it_when_it_is() -> None:
    over = task(status=ended("cancelled"))
    assert decide(seen(over), NOW) == Wait()
    assert decide(seen(over, job()), NOW) == DeleteJob(job())
    assert decide(seen(over, replace(job(), deleting=True)), NOW) == Wait()


def test_a_worker_that_has_reported_gets_a_moment_to_end() -> None:
    over = task(status=ended(at=NOW))
    assert decide(seen(over, job(), run()), NOW + 1) == Wait(NOW + LINGER)
    assert decide(seen(over, job(), run()), NOW + LINGER) == DeleteJob(job())
    assert decide(seen(over, job(), pod(state=terminated(0))), NOW + 1) == DeleteJob(job())
    assert decide(seen(over, job()), NOW + 1) == DeleteJob(job())


@pytest.mark.req("R-5.3")
def test_a_retention_that_is_changed_after_the_end_moves_the_expiry() -> None:
    keep = {"after": "Finish", "milliseconds": 60_000}
    right = task(status=ended(at=NOW, expires=NOW + 60), retention=keep)
    assert decide(seen(right), NOW) == Wait()
    assert decide(seen(task(status=ended(at=NOW, expires=NOW + 5), retention=keep)), NOW) == Reschedule(NOW + 60)
    assert decide(seen(task(status=ended(at=NOW, expires=NOW + 5))), NOW) == Reschedule(None)
    assert decide(seen(task(status=ended(at=NOW), retention=keep)), NOW) == Reschedule(NOW + 60)
