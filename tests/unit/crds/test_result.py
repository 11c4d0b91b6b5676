"""MCPTaskResult and the reference that completes a task."""

import hashlib

import pytest

from mcptasks_crds.kinds import EVENT, NAMESPACE, POD, RESULT, TASK
from mcptasks_crds.result import new_result, result_ref

TEXT = '{"content":[{"type":"text","text":"h\u00e9"}],"isError":true}'


def test_a_result_is_owned_by_its_task_and_named_after_this_life_of_it() -> None:
    body = new_result("t-1", "uid-1", TEXT, is_error=True)
    (owner,) = body["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"], owner["controller"]) == ("MCPTask", "t-1", "uid-1", True)
    assert owner["blockOwnerDeletion"] is False
    assert body["metadata"]["name"] == "r-uid-1"
    assert body["metadata"]["name"] != new_result("t-1", "uid-2", TEXT, is_error=True)["metadata"]["name"]


def test_the_reference_names_exactly_what_was_stored() -> None:
    body = new_result("t-1", "uid-1", TEXT, is_error=True)
    assert body["spec"]["result"] == TEXT
    ref = result_ref({**body, "metadata": {**body["metadata"], "uid": "ru", "namespace": "ns"}})
    encoded = TEXT.encode()
    assert ref.wire() == {
        "name": "r-uid-1",
        "uid": "ru",
        "size": len(encoded),
        "sha256": hashlib.sha256(encoded).hexdigest(),
        "isError": True,
    }


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (TASK.path("ns", "n", "status"), "/apis/mcptasks.dev/v1alpha1/namespaces/ns/mcptasks/n/status"),
        (RESULT.path("ns"), "/apis/mcptasks.dev/v1alpha1/namespaces/ns/mcptaskresults"),
        (POD.path(), "/api/v1/pods"),
        (NAMESPACE.path(name="n"), "/api/v1/namespaces/n"),
        (EVENT.path(None), "/api/v1/events"),
    ],
)
def test_a_kind_knows_its_path(path: str, expected: str) -> None:
    assert path == expected
    assert POD.api_version == "v1"
