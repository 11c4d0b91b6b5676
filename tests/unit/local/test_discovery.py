from typing import Any

import pytest

from mcptasks_local import discovery
from tests.unit.local.widgets import new_objects

RESOURCES = new_objects().resources()
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"


def body(path: str, accept: str = "*/*") -> Any:
    found = discovery.document(RESOURCES, path, accept)
    assert found is not None
    return found.body


def test_groups() -> None:
    assert body("/api")["versions"] == ["v1"]
    names = [group["name"] for group in body("/apis")["groups"]]
    assert {"batch", "example.dev", "coordination.k8s.io"} <= set(names)
    assert "" not in names
    assert body("/apis/batch")["preferredVersion"] == {"groupVersion": "batch/v1", "version": "v1"}


def test_resources_with_their_subresources() -> None:
    core = {entry["name"]: entry for entry in body("/api/v1")["resources"]}
    assert core["pods"]["shortNames"] == ["po"]
    assert core["pods/log"]["verbs"] == ["get"]
    assert core["serviceaccounts/token"]["kind"] == "TokenRequest"
    custom = {entry["name"]: entry for entry in body("/apis/example.dev/v1")["resources"]}
    assert custom["widgets"]["categories"] == ["toys"]
    assert custom["widgets/status"]["verbs"] == ["get", "patch", "update"]


def test_all_in_one_answer() -> None:
    found = discovery.document(RESOURCES, "/apis", AGGREGATED)
    assert found is not None
    assert found.media_type == "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    (group,) = [item for item in found.body["items"] if item["metadata"]["name"] == "example.dev"]
    (entry,) = group["versions"][0]["resources"]
    assert (entry["resource"], entry["scope"], entry["shortNames"]) == ("widgets", "Namespaced", ["wd"])
    assert [below["subresource"] for below in entry["subresources"]] == ["status"]
    (core,) = body("/api", AGGREGATED)["items"]
    assert core["metadata"] == {}


def test_openapi_has_schemas_and_field_validation() -> None:
    index = body("/openapi/v3")["paths"]
    url = index["apis/example.dev/v1"]["serverRelativeURL"]
    assert index == body("/openapi/v3")["paths"]  # the hash is the content's, so kubectl may cache
    document = body(url.partition("?")[0])
    schema = document["components"]["schemas"]["dev.example.v1.Widget"]
    assert schema["x-kubernetes-group-version-kind"] == [{"group": "example.dev", "version": "v1", "kind": "Widget"}]
    assert schema["properties"]["spec"]["properties"]["owner"]["description"] == "Who has it."
    patch = document["paths"]["/apis/example.dev/v1/namespaces/{namespace}/widgets/{name}"]["patch"]
    assert "fieldValidation" in [parameter["name"] for parameter in patch["parameters"]]
    assert "io.k8s.api.core.v1.Pod" in body("/openapi/v3/api/v1")["components"]["schemas"]


@pytest.mark.parametrize(
    "path",
    ["/apis/nope", "/apis/nope/v1", "/apis/batch/v2", "/api/v2", "/openapi/v3/apis/nope/v1", "/openapi/v2", "/x"],
)
def test_what_is_not_there(path: str) -> None:
    assert discovery.document(RESOURCES, path, "*/*") is None
