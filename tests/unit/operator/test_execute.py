import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mcptasks_crds.api import Api, Object
from mcptasks_crds.errors import ApiFailure, NotFound, Refused
from mcptasks_crds.kinds import EVENT, JOB, POD, RESULT, SECRET, TASK, TOOL
from mcptasks_crds.names import LABEL_TASK_UID
from mcptasks_crds.record import record
from mcptasks_crds.result import new_result
from mcptasks_crds.times import render
from mcptasks_operator.arguments import ANNOTATION_LIMIT
from mcptasks_operator.decide import decide
from mcptasks_operator.execute import FORBIDDEN_TRIES, LOG_PATIENCE, Executor
from mcptasks_operator.metrics import Metrics
from mcptasks_operator.observe import read_job, read_pod, read_tool
from mcptasks_operator.pace import Pace
from mcptasks_operator.slots import Key
from mcptasks_operator.store import Store
from mcptasks_operator.surroundings import Surroundings

from .cluster import NAMESPACE, START, FakeApi
from .objects import (
    condition,
    ended,
    job_object,
    pod_object,
    running,
    task,
    task_object,
    terminated,
    tool_object,
    waiting,
)

KEY = task().key
NAME = task().name
JOB_NAME = "mct-task-1-1"
DONE = '{"content": [{"type": "text", "text": "by the worker"}]}'


class World:
    """An API server, and an operator that looks at one task when it is told to."""

    def __init__(self, starts: float = 1000) -> None:
        self.api = FakeApi()
        self.store = Store(lambda _key: None, lambda _key: None)
        self.store.open_slots()
        self.metrics = Metrics()
        pace: Pace[Key] = Pace(starts, 0 if starts == 1 else 100, lambda: self.api.now)
        real: Api = self.api  # type: ignore[assignment]
        self.executor = Executor(
            real, self.store, self.metrics, pace, lambda: self.api.now, Surroundings("http://service")
        )
        self.task(status=None)
        self.store.put_tool(
            read_tool(self.api.add(TOOL, tool_object(job={"template": tool_template(), "logLimit": 100})))
        )

    def task(self, status: Mapping[str, Any] | None = None, **spec: Any) -> None:
        """Put task 1 there."""
        self.store.put_task(record(self.api.add(TASK, task_object(status=status, **spec))))

    def job(self, status: Object | None = None, **meta: Any) -> None:
        """Put its Job there, and let the watch tell."""
        self.store.put_job(read_job(self.api.add(JOB, job_object(status=status, **meta))))

    def pod(self, state: Object | None = None, **more: Any) -> None:
        """Put its pod there, and let the watch tell."""
        self.store.put_pod(read_pod(self.api.add(POD, pod_object(state=state, **more))))

    async def step(self, failures: int = 0) -> float | None:
        """One look at the task."""
        situation = self.store.situation(KEY)
        assert situation is not None
        return await self.executor.execute(situation.task, decide(situation, self.api.now), failures)

    @property
    def status(self) -> Object:
        """The task's status as the API server has it."""
        status: Object = self.api.one(TASK, NAME).get("status") or {}
        return status

    @property
    def result(self) -> Object:
        """The result as it is stored."""
        value: Object = json.loads(self.api.one(RESULT, "r-task-1")["spec"]["result"])
        return value

    def metric(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"mcptasks_operator_{name}", labels)


def tool_template() -> Object:
    return {"spec": {"containers": [{"name": "tool", "image": "busybox"}]}}


@pytest.fixture
def world() -> World:
    return World()


def conditions(status: Object) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status.get("conditions", [])}


# The whole way


async def test_work_does_not_begin_before_it_was_asked_for(world: World) -> None:
    await world.step()
    world.store.put_job(read_job(world.api.add(JOB, job_object())))
    world.pod(running(START - 0.9), status={"phase": "Running"})
    await world.step()
    assert world.status["startedAt"] == render(START)


async def test_a_task_runs_and_is_completed_from_its_log(world: World) -> None:
    await world.step()
    created = world.api.one(JOB, JOB_NAME)
    assert created["metadata"]["labels"][LABEL_TASK_UID] == "task-1"
    world.store.put_job(read_job(world.api.add(JOB, job_object())))

    world.pod(running(START + 2), status={"phase": "Running"})
    await world.step()
    assert world.status["state"] == "working"
    assert world.status["startedAt"] == render(START + 2)
    assert world.status["job"] == {"name": JOB_NAME, "uid": "job-1-1"}
    assert world.status["attempt"] == 1
    assert conditions(world.status) == {"Started": ("True", "JobCreated")}

    world.api.now = START + 6
    world.api.logs["pod-1-1"] = b"hello\n"
    world.pod(terminated(0))
    await world.step()
    assert world.result == {"content": [{"type": "text", "text": "hello\n"}], "isError": False}
    assert (world.status["state"], world.status["reason"], world.status["message"]) == (
        "completed",
        "Succeeded",
        "hello",
    )
    assert world.status["result"]["name"] == "r-task-1"
    assert world.status["finishedAt"] == world.status["lastUpdatedAt"] == render(START + 6)
    assert conditions(world.status)["Finished"] == ("True", "Succeeded")

    await world.step()
    assert world.api.all(JOB) == []
    assert await world.step() is None
    assert world.api.writes == [
        "create jobs",
        "patch mcptasks",
        "create mcptaskresults",
        "patch mcptasks",
        "delete jobs",
    ]
    assert world.metric("tasks_ended_total", tool="echo", state="completed", reason="Succeeded") == 1
    assert world.metric("jobs_created_total", tool="echo") == 1


@pytest.mark.req("R-3.5")
async def test_an_exit_code_completes_the_task_with_a_result_that_says_error(world: World) -> None:
    world.job()
    world.api.logs["pod-1-1"] = b"no such host\n"
    world.pod(terminated(3, reason="Error"))
    await world.step()
    assert (world.status["state"], world.status["reason"]) == ("completed", "ToolError")
    assert world.status["message"] == "exit code 3: no such host"
    assert world.status["result"]["isError"] is True


@pytest.mark.req("R-5.1")
async def test_the_end_sets_the_expiry(world: World) -> None:
    world.task(retention={"after": "Finish", "milliseconds": 60_000}, cancel={"reason": "enough"})
    await world.step()
    assert world.status["state"] == "cancelled"
    assert world.status["expiresAt"] == render(START + 60)
    assert world.status["message"] == "cancelled: enough"


# Making the Job


async def test_a_task_that_waits_says_why_once(world: World) -> None:
    world.store.put_tool(read_tool(world.api.add(TOOL, tool_object(concurrency={"total": 1}))))
    world.store.drop_task(KEY, "task-1")
    world.store.put_task(record(world.api.add(TASK, task_object(2))))
    second = world.api.add(TASK, {**task_object(3), "metadata": task_object(3)["metadata"] | {"uid": "late"}})
    world.store.put_task(record(second))
    situation = world.store.situation(record(second).key)
    assert situation is not None
    world.api.now = START + 2
    await world.executor.execute(situation.task, decide(situation, world.api.now))
    status = world.api.one(TASK, record(second).name)["status"]
    assert conditions(status) == {"Queued": ("True", "ConcurrencyLimit")}
    assert status["reason"] == "ConcurrencyLimit"
    assert "state" not in status


@pytest.mark.fault("E17")
async def test_a_job_that_is_there_already_is_taken_for_ours(world: World) -> None:
    world.api.add(JOB, job_object())
    assert await world.step() is None
    assert [job.uid for job in world.store.jobs()] == ["job-1-1"]
    assert world.metric("jobs_created_total", tool="echo") is None


async def test_a_strangers_job_of_that_name_fails_the_task(world: World) -> None:
    world.api.add(JOB, job_object(labels={}))
    await world.step()
    assert (world.status["state"], world.status["reason"]) == ("failed", "ToolInvalid")


async def test_a_task_that_changed_before_its_job_is_decided_again(world: World) -> None:
    world.api.change(TASK, NAME, {"state": "cancelled", "finishedAt": render(START)})
    assert await world.step() == 0
    assert world.api.writes == []
    assert await world.step() is None


async def test_a_task_that_is_gone_is_forgotten(world: World) -> None:
    del world.api.objects["mcptasks", NAMESPACE, NAME]
    assert await world.step() is None
    assert world.store.task(KEY) is None


async def test_jobs_are_made_at_the_pace(world: World) -> None:
    slow = World(starts=1)
    slow.executor._pace.turn(("other", "task"))
    assert await slow.step() == 1
    assert slow.api.requests == []
    slow.api.now += 1
    await slow.step()
    assert slow.api.writes == ["create jobs"]


async def test_large_arguments_go_into_a_secret_once(world: World) -> None:
    world.task(arguments='{"a": "' + "x" * ANNOTATION_LIMIT + '"}')
    world.api.add(SECRET, {"metadata": {"name": "mct-task-1"}})
    await world.step()
    assert world.api.writes == ["create secrets", "create jobs"]


@pytest.mark.parametrize("error", [Refused(422, "Invalid", "spec: no image"), ApiFailure(413, "TooLarge", "too large")])
async def test_a_refused_job_fails_the_task_with_the_servers_words(world: World, error: ApiFailure) -> None:
    world.api.faults["create jobs"] = [error]
    await world.step()
    assert (world.status["state"], world.status["reason"]) == ("failed", "ToolInvalid")
    assert str(error) in world.status["error"]["message"]
    assert world.status["error"] == {
        "code": -32603,
        "message": world.status["message"],
        "data": {"reason": "ToolInvalid"},
    }


async def test_a_403_is_believed_only_after_some_tries(world: World) -> None:
    forbidden = ApiFailure(403, "Forbidden", "jobs.batch is forbidden")
    world.api.faults["create jobs"] = [forbidden, forbidden]
    with pytest.raises(ApiFailure):
        await world.step(failures=FORBIDDEN_TRIES - 1)
    assert world.status == {}
    await world.step(failures=FORBIDDEN_TRIES)
    assert world.status["reason"] == "ToolInvalid"


@pytest.mark.fault("E19")
async def test_a_quota_of_jobs_is_waited_for_and_said_once(world: World) -> None:
    full = ApiFailure(403, "Forbidden", "exceeded quota: ten")
    world.api.faults["create jobs"] = [full, full]
    for failures in (20, 21):
        with pytest.raises(ApiFailure):
            await world.step(failures)
    assert conditions(world.status) == {"Queued": ("True", "QuotaExceeded")}
    assert world.api.writes.count("patch mcptasks") == 1
    await world.step()
    assert len(world.api.all(JOB)) == 1


@pytest.mark.parametrize("code", [0, 429, 500, 503])
async def test_a_server_in_trouble_is_tried_again(world: World, code: int) -> None:
    world.api.faults["create jobs"] = [ApiFailure(code, "", "trouble")]
    with pytest.raises(ApiFailure):
        await world.step()
    assert world.status == {}


async def test_a_namespace_that_goes_away_is_no_loop(world: World) -> None:
    world.api.faults["create jobs"] = [NotFound(404, "NotFound", "namespace not found")]
    with pytest.raises(ApiFailure) as raised:
        await world.step()
    assert not isinstance(raised.value, NotFound)


async def test_a_template_without_a_container_fails_the_task(world: World) -> None:
    world.store.put_tool(read_tool(world.api.add(TOOL, tool_object(job={"template": {"spec": {}}}))))
    await world.step()
    assert world.status["reason"] == "ToolInvalid"
    assert "no container" in world.status["message"]


async def test_a_tool_that_the_watch_has_yet_to_bring_is_read(world: World) -> None:
    (tool,) = world.store.tools()
    fresh = World()
    fresh.store.drop_tool(tool.key, next(fresh.store.tools()).uid)
    fresh.api.add(TOOL, tool_object() | {"metadata": {"name": "echo", "uid": "new", "generation": 1}})
    await fresh.step()
    assert [t.uid for t in fresh.store.tools()] == ["new"]
    assert fresh.status == {}


async def test_a_tool_that_is_not_there_fails_the_task(world: World) -> None:
    (tool,) = world.store.tools()
    world.store.drop_tool(tool.key, tool.uid)
    del world.api.objects["mcptools", NAMESPACE, "echo"]
    await world.step()
    assert (world.status["state"], world.status["reason"]) == ("failed", "ToolNotFound")
    assert "echo" in world.status["message"]


# While it starts and runs


@pytest.mark.fault("O12")
async def test_what_holds_up_a_start_is_shown(world: World) -> None:
    world.job()
    world.pod(waiting("ErrImagePull", "no such image"))
    world.api.now = START + 10
    await world.step()
    assert (world.status["reason"], world.status["message"]) == ("ImagePull", "ErrImagePull: no such image")
    assert world.status["job"]["name"] == JOB_NAME
    assert "state" not in world.status


async def test_the_wait_in_the_queue_ends_with_the_start(world: World) -> None:
    world.task(status={"conditions": [condition("Queued", "ConcurrencyLimit")], "message": "full"})
    world.job()
    world.pod(running(), status={"phase": "Running"})
    await world.step()
    assert conditions(world.status) == {"Queued": ("False", "JobCreated"), "Started": ("True", "JobCreated")}
    assert "message" not in world.status


async def test_a_question_keeps_its_state(world: World) -> None:
    world.task(status={"state": "input_required"})
    world.job()
    world.pod(running(), status={"phase": "Running"})
    await world.step()
    assert world.status["state"] == "input_required"
    assert world.status["job"]["uid"] == "job-1-1"


async def test_the_next_look_comes_when_it_is_due(world: World) -> None:
    world.job()
    assert await world.step() == 300


async def test_why_a_pod_never_came_is_asked_of_the_events(world: World) -> None:
    world.job()
    world.api.now = START + 300
    for number, (reason, message) in enumerate(
        [("FailedCreate", "old"), ("FailedCreate", "forbidden: X"), ("Other", "y")]
    ):
        event = {"reason": reason, "message": message, "lastTimestamp": render(START + number)}
        world.api.add(EVENT, {"metadata": {"name": f"e{number}"}, "involvedObject": {"uid": "job-1-1"}, **event})
    await world.step()
    await world.step()
    assert (world.status["state"], world.status["reason"]) == ("failed", "PodNotCreated")
    assert world.status["message"] == "forbidden: X"


async def test_no_event_is_no_reason_to_fail(world: World) -> None:
    world.job()
    world.api.now = START + 300
    await world.step()
    assert await world.step() == 300
    assert world.status == {}


@pytest.mark.fault("E16")
async def test_a_disrupted_attempt_is_followed_by_another(world: World) -> None:
    world.store.put_tool(read_tool(world.api.add(TOOL, tool_object(retries={"limit": 1}))))
    world.job()
    evicted = {"phase": "Failed", "conditions": [condition("DisruptionTarget", "EvictionByEvictionAPI")]}
    world.pod(terminated(0), status=evicted)
    await world.step()
    assert world.status["attempt"] == 2
    assert "job" not in world.status
    assert conditions(world.status)["Started"] == ("False", "Retrying")
    await world.step()
    await world.step()
    assert [job["metadata"]["name"] for job in world.api.all(JOB)] == ["mct-task-1-2"]


async def test_a_disrupted_attempt_that_had_reported_is_not_repeated(world: World) -> None:
    world.store.put_tool(read_tool(world.api.add(TOOL, tool_object(retries={"limit": 1}))))
    world.api.add(RESULT, new_result(NAME, "task-1", DONE, is_error=False))
    world.job()
    evicted = {"phase": "Failed", "conditions": [condition("DisruptionTarget", "EvictionByEvictionAPI")]}
    world.pod(terminated(0), status=evicted)
    await world.step()
    assert world.status["state"] == "completed"


# Its end, and crashes on the way


@pytest.mark.fault("E4")
async def test_a_result_that_is_there_wins_over_the_log(world: World) -> None:
    world.api.add(RESULT, new_result(NAME, "task-1", DONE, is_error=False))
    world.api.logs["pod-1-1"] = b"noise"
    world.job()
    world.pod(terminated(0))
    await world.step()
    assert world.status["state"] == "completed"
    assert world.result["content"][0]["text"] == "by the worker"


@pytest.mark.fault("E4")
async def test_a_crash_between_the_result_and_the_state_heals(world: World) -> None:
    world.api.logs["pod-1-1"] = b"hello"
    world.job()
    world.pod(terminated(0))
    world.api.faults["patch mcptasks"] = [ApiFailure(0, "Unreachable", "killed")]
    with pytest.raises(ApiFailure):
        await world.step()
    assert world.status == {}
    world.api.logs.clear()
    await world.step()
    assert world.status["state"] == "completed"
    assert world.result["content"][0]["text"] == "hello"


@pytest.mark.parametrize("is_error", [True, False])
async def test_nothing_fails_that_has_a_result(world: World, is_error: bool) -> None:
    world.api.add(RESULT, new_result(NAME, "task-1", DONE, is_error=is_error))
    world.job()
    world.pod(terminated(137, reason="OOMKilled"))
    await world.step()
    assert world.status["state"] == "completed"
    assert world.status["reason"] == ("ToolError" if is_error else "Succeeded")


async def test_a_failed_task_says_why(world: World) -> None:
    world.job()
    world.pod(terminated(137, reason="OOMKilled"))
    await world.step()
    assert (world.status["state"], world.status["reason"]) == ("failed", "OutOfMemory")
    assert world.status["error"]["data"] == {"reason": "OutOfMemory"}


async def test_a_cancel_that_lands_first_wins_and_the_result_is_dropped(world: World) -> None:
    world.api.logs["pod-1-1"] = b"hello"
    world.job()
    world.pod(terminated(0))
    world.api.before["create mcptaskresults"] = lambda: world.api.change(TASK, NAME, ended("cancelled"))
    assert await world.step() == 0
    assert world.status["state"] == "cancelled"
    assert world.api.all(RESULT) == []


async def test_a_worker_whose_report_is_being_committed_loses_nothing(world: World) -> None:
    world.api.logs["pod-1-1"] = b"hello"
    world.job()
    world.pod(terminated(0))

    def reported() -> None:
        world.api.add(RESULT, new_result(NAME, "task-1", DONE, is_error=False))
        world.api.change(TASK, NAME, ended())

    world.api.before["create mcptaskresults"] = reported
    assert await world.step() == 0
    assert world.status["state"] == "completed"
    assert world.result["content"][0]["text"] == "by the worker"


async def test_a_conflict_that_is_no_end_keeps_the_result(world: World) -> None:
    world.api.logs["pod-1-1"] = b"hello"
    world.job()
    world.pod(terminated(0))
    world.api.before["create mcptaskresults"] = lambda: world.api.change(TASK, NAME, {"progress": {"progress": 1}})
    assert await world.step() == 0
    assert len(world.api.all(RESULT)) == 1
    await world.step()
    assert world.status["state"] == "completed"
    assert world.metric("conflicts_total") == 1


async def test_a_result_that_goes_away_while_it_is_read_is_decided_again(world: World) -> None:
    world.api.logs["pod-1-1"] = b"hello"
    world.api.add(RESULT, new_result(NAME, "task-1", DONE, is_error=False))
    world.job()
    world.pod(terminated(0))
    gone: Callable[[], object] = lambda: world.api.objects.pop(("mcptaskresults", NAMESPACE, "r-task-1"))  # noqa: E731
    world.api.before["get mcptaskresults"] = gone
    assert await world.step() == 0
    await world.step()
    assert world.result["content"][0]["text"] == "hello"


@pytest.mark.fault("E7")
async def test_a_result_that_cannot_be_kept_names_both_sizes(world: World) -> None:
    limit = 1024 * 1024
    template = {"template": tool_template(), "logLimit": limit}
    world.store.put_tool(read_tool(world.api.add(TOOL, tool_object(job=template))))
    world.api.logs["pod-1-1"] = b"<" * limit
    world.job()
    world.pod(terminated(0))
    await world.step()
    assert (world.status["state"], world.status["reason"]) == ("failed", "ResultTooLarge")
    assert str(limit) in world.status["message"]
    assert any(int(word) > 6 * limit for word in world.status["message"].split() if word.isdigit())


async def test_the_log_is_cut_to_what_the_tool_allows(world: World) -> None:
    world.api.logs["pod-1-1"] = b"x\n" * 500
    world.job()
    world.pod(terminated(0))
    await world.step()
    text = world.result["content"][0]["text"]
    assert text.startswith("[cut: only the last 100 bytes")
    assert text.endswith("x\n" * 50)


async def test_without_its_tool_the_default_limit_holds(world: World) -> None:
    (tool,) = world.store.tools()
    world.store.drop_tool(tool.key, tool.uid)
    world.api.logs["pod-1-1"] = b"x" * 200
    world.job()
    world.pod(terminated(0))
    await world.step()
    assert world.result["content"][0]["text"] == "x" * 200


async def test_a_log_that_no_kubelet_serves_is_given_up_in_the_end(world: World) -> None:
    world.job()
    world.pod(terminated(2, reason="Error"))
    world.api.faults["log"] = [ApiFailure(500, "InternalError", "i/o timeout")] * 2
    with pytest.raises(ApiFailure):
        await world.step()
    world.api.now = START + 5 + LOG_PATIENCE
    await world.step()
    assert world.status["reason"] == "ToolError"
    assert "gone before it could be read" in world.result["content"][0]["text"]


# What somebody else took away


async def test_a_job_that_somebody_deleted_fails_the_task(world: World) -> None:
    world.job()
    (job,) = world.store.jobs()
    world.store.drop_job(job.task_uid, job.name, job.uid)
    del world.api.objects["jobs", NAMESPACE, JOB_NAME]
    await world.step()
    assert (world.status["state"], world.status["reason"]) == ("failed", "Interrupted")


async def test_a_job_that_the_watch_has_yet_to_bring_is_read(world: World) -> None:
    world.task(status={"state": "working", "attempt": 1, "job": {"name": JOB_NAME, "uid": "job-1-1"}})
    world.api.add(JOB, job_object())
    await world.step()
    assert [job.uid for job in world.store.jobs()] == ["job-1-1"]
    assert world.status["state"] == "working"


async def test_a_pod_that_the_watch_has_yet_to_bring_is_read(world: World) -> None:
    world.job(status={"conditions": [condition("Complete", "Completed")]})
    world.api.add(POD, pod_object(state=terminated(0)))
    world.api.logs["pod-1-1"] = b"hello"
    await world.step()
    await world.step()
    assert world.status["state"] == "completed"


async def test_a_pod_that_is_gone_with_its_output_fails_the_task(world: World) -> None:
    world.job(status={"conditions": [condition("Complete", "Completed")]})
    await world.step()
    await world.step()
    assert (world.status["state"], world.status["reason"]) == ("failed", "Interrupted")


async def test_a_job_that_is_gone_already_need_not_be_deleted(world: World) -> None:
    world.task(status=ended("cancelled"))
    world.job()
    del world.api.objects["jobs", NAMESPACE, JOB_NAME]
    await world.step()
    assert list(world.store.jobs()) == []


async def test_another_life_of_a_job_is_not_deleted(world: World) -> None:
    world.task(status=ended("cancelled"))
    world.job()
    world.api.one(JOB, JOB_NAME)["metadata"]["uid"] = "other"
    assert await world.step() == 0
    assert len(world.api.all(JOB)) == 1


async def test_another_life_of_the_task_is_not_written(world: World) -> None:
    world.job()
    world.pod(running(), status={"phase": "Running"})
    item = world.api.one(TASK, NAME)
    item["metadata"] |= {"uid": "second", "resourceVersion": "999"}
    assert await world.step() == 0
    task = world.store.task(KEY)
    assert task is not None
    assert task.uid == "second"
    assert world.status == {}


# Afterwards


@pytest.mark.req("R-5.3")
async def test_a_changed_retention_is_written_as_the_expiry(world: World) -> None:
    world.task(status=ended(expires=START + 20), retention={"after": "Finish", "milliseconds": 90_000})
    await world.step()
    assert world.status["expiresAt"] == render(START + 100)
    world.task(status=ended(expires=START + 20))
    await world.step()
    assert "expiresAt" not in world.status
