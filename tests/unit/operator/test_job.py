import copy
from typing import Any

import pytest

from mcptasks_crds.errors import InvalidValue
from mcptasks_crds.names import LABEL_MANAGED_BY, LABEL_TASK, LABEL_TASK_UID
from mcptasks_operator.arguments import ANNOTATION, ANNOTATION_LIMIT
from mcptasks_operator.job import LONGEST, arguments_secret, build_job, build_pod, needs_secret
from mcptasks_operator.surroundings import Surroundings

from .objects import TEMPLATE, task, tool_spec

URL = "http://service:8080"
PLAIN = Surroundings(URL, restricted=False)


def built(arguments: str = "{}", attempt: int = 1, **spec: Any) -> dict[str, Any]:
    return build_job(task(), arguments, tool_spec(**spec), attempt, PLAIN)


def pod_spec(job: dict[str, Any]) -> dict[str, Any]:
    spec: dict[str, Any] = job["spec"]["template"]["spec"]
    return spec


def env_names(job: dict[str, Any]) -> list[str]:
    return [e["name"] for e in pod_spec(job)["containers"][0]["env"]]


@pytest.mark.fault("E17")
def test_the_name_is_the_tasks_uid_and_the_attempt_and_kubernetes_retries_nothing() -> None:
    job = built(attempt=2)
    assert job["metadata"]["name"] == "mct-task-1-2"
    assert job["spec"]["backoffLimit"] == 0
    assert pod_spec(job)["restartPolicy"] == "Never"


def test_the_task_owns_its_job_and_its_labels_find_both() -> None:
    job = built()
    (owner,) = job["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("MCPTask", "task-1", True)
    for marks in (job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]):
        assert marks[LABEL_MANAGED_BY] == "mcptasks"
        assert (marks[LABEL_TASK], marks[LABEL_TASK_UID]) == (task().name, "task-1")


def test_arguments_arrive_as_file_and_as_variables_before_all_others() -> None:
    template = copy.deepcopy(TEMPLATE)
    template["spec"]["containers"][0]["env"] = [{"name": "API_KEY", "value": "s"}]
    job = built('{"text": "$(API_KEY)"}', job={"template": template})
    assert job["spec"]["template"]["metadata"]["annotations"] == {ANNOTATION: '{"text": "$(API_KEY)"}'}
    names = env_names(job)
    assert names[0] == "ARG_text"
    assert names[-1] == "API_KEY"
    container = pod_spec(job)["containers"][0]
    assert container["env"][0]["value"] == "$$(API_KEY)"
    assert container["volumeMounts"] == [{"name": "mcptasks", "mountPath": "/mcptasks", "readOnly": True}]
    file, token = pod_spec(job)["volumes"][0]["projected"]["sources"]
    assert file["downwardAPI"]["items"][0]["path"] == "arguments.json"
    assert token["serviceAccountToken"] == {"path": "token", "audience": "mcptasks", "expirationSeconds": 3600}


def test_the_pod_knows_where_to_report() -> None:
    env = {e["name"]: e["value"] for e in pod_spec(built())["containers"][0]["env"]}
    assert env == {
        "MCPTASKS_TASK": task().name,
        "MCPTASKS_URL": URL,
        "MCPTASKS_TOKEN_FILE": "/mcptasks/token",
        "MCPTASKS_ARGUMENTS": "/mcptasks/arguments.json",
        "MCPTASKS_TERMINATION_LOG": "/dev/termination-log",
    }


@pytest.mark.fault("P26")
def test_no_token_of_the_cluster_reaches_the_program() -> None:
    assert pod_spec(built())["automountServiceAccountToken"] is False


@pytest.mark.fault("E8")
def test_large_arguments_come_by_a_secret_that_the_task_owns() -> None:
    text = '{"a": "' + "x" * ANNOTATION_LIMIT + '"}'
    assert needs_secret(text)
    assert not needs_secret("{}")
    job = built(text)
    assert ANNOTATION not in job["spec"]["template"]["metadata"].get("annotations", {})
    source = pod_spec(job)["volumes"][0]["projected"]["sources"][0]["secret"]
    secret = arguments_secret(task(), text)
    assert source["name"] == secret["metadata"]["name"]
    assert secret["stringData"]["arguments.json"] == text
    assert secret["metadata"]["ownerReferences"][0]["uid"] == "task-1"


def test_what_the_template_says_stands_and_the_tool_is_not_changed() -> None:
    template = {
        "metadata": {"labels": {"team": "a", LABEL_TASK: "forged"}, "annotations": {"note": "b"}},
        "spec": {
            "terminationGracePeriodSeconds": 60,
            "volumes": [{"name": "data", "emptyDir": {}}],
            "containers": [
                {"name": "proxy", "image": "p"},
                {
                    "name": "tool",
                    "image": "x",
                    "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                    "terminationMessagePolicy": "File",
                    "terminationMessagePath": "/out",
                },
            ],
        },
    }
    spec = tool_spec(job={"template": template})
    job = build_job(task(), "{}", spec, 1, PLAIN)
    meta = job["spec"]["template"]["metadata"]
    assert (meta["labels"]["team"], meta["labels"][LABEL_TASK]) == ("a", task().name)
    assert meta["annotations"]["note"] == "b"
    assert pod_spec(job)["terminationGracePeriodSeconds"] == 60
    assert [v["name"] for v in pod_spec(job)["volumes"]] == ["data", "mcptasks"]
    proxy, container = pod_spec(job)["containers"]
    assert "env" not in proxy
    assert container["terminationMessagePolicy"] == "File"
    assert {e["name"]: e["value"] for e in container["env"]}["MCPTASKS_TERMINATION_LOG"] == "/out"
    assert spec.job.template == template


def test_a_program_has_five_seconds_to_stop_and_its_logs_end_is_its_message() -> None:
    job = built()
    assert pod_spec(job)["terminationGracePeriodSeconds"] == 5
    assert pod_spec(job)["containers"][0]["terminationMessagePolicy"] == "FallbackToLogsOnError"


def test_the_jobs_own_deadline_is_a_fence_behind_ours() -> None:
    assert built(timeouts={"start": "1500ms", "run": "10s"})["spec"]["activeDeadlineSeconds"] == 13
    assert built(timeouts={"run": "999999999d"})["spec"]["activeDeadlineSeconds"] == LONGEST


def test_a_template_without_a_container_is_refused() -> None:
    with pytest.raises(InvalidValue, match="no container"):
        built(job={"template": {"spec": {}}})


def test_the_dry_run_pod_is_the_jobs_pod() -> None:
    pod = build_pod(tool_spec(), task(), PLAIN)
    job = built()
    assert pod["spec"] == job["spec"]["template"]["spec"]
    assert pod["metadata"]["generateName"]
