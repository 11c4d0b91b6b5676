import asyncio
import json
from typing import Any

import pytest

from mcptasks_local import bodies
from mcptasks_local.errors import Object
from tests.unit.local.widgets import PATH, Client, new_client, widget

MERGE, APPLY = "application/merge-patch+json", "application/apply-patch+yaml"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/default"
TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"
POD: Object = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
PODS = "/api/v1/namespaces/default/pods"
JOBS = "/apis/batch/v1/namespaces/default/jobs"


@pytest.fixture
def client() -> Client:
    return new_client()


async def test_an_object_from_its_creation_to_its_end(client: Client) -> None:
    made = await client.call("POST", PATH, widget())
    assert (made.status, made.body["spec"]) == (201, {"owner": "ann", "size": 3})
    read = await client.call("GET", f"{PATH}/a")
    assert (read.status, read.body) == (200, made.body)
    patched = await client.call("PATCH", f"{PATH}/a", {"spec": {"size": 4}}, content_type=MERGE)
    assert (patched.status, patched.body["metadata"]["generation"]) == (200, 2)
    put = await client.call("PUT", f"{PATH}/a", patched.body | {"spec": {"owner": "ann", "size": 5}})
    assert put.body["spec"]["size"] == 5
    status = await client.call("PATCH", f"{PATH}/a/status", {"status": {"state": "busy"}}, content_type=MERGE)
    assert status.body["status"] == (await client.call("GET", f"{PATH}/a/status")).body["status"] == {"state": "busy"}
    gone = await client.call("DELETE", f"{PATH}/a")
    details = {"name": "a", "group": "example.dev", "kind": "widgets", "uid": made.body["metadata"]["uid"]}
    assert (gone.status, gone.body["status"], gone.body["details"]) == (200, "Success", details)
    missing = await client.call("GET", f"{PATH}/a")
    assert (missing.status, missing.body["kind"], missing.body["reason"]) == (404, "Status", "NotFound")


async def test_yaml_is_taken_and_times_in_it_stay_text(client: Client) -> None:
    text = (
        b"apiVersion: example.dev/v1\nkind: Widget\nmetadata: {name: y}\nspec: {owner: ann, at: 2026-12-01T10:00:00Z}"
    )
    made = await client.call("POST", PATH, text, content_type="application/yaml")
    assert made.body["spec"]["at"] == "2026-12-01T10:00:00Z"
    bad = await client.call("POST", PATH, b"a: [", content_type="application/yaml")
    assert bad.status == 400


async def test_unknown_fields_make_warnings(client: Client) -> None:
    item = widget(spec={"owner": "ann", "bogus": 1})
    assert (await client.call("POST", PATH, item)).warnings == ['299 - "unknown field \\"spec.bogus\\""']
    assert (
        await client.call("POST", f"{PATH}?fieldValidation=Ignore", item | {"metadata": {"name": "b"}})
    ).warnings == []
    strict = await client.call("POST", f"{PATH}?fieldValidation=Strict", item | {"metadata": {"name": "c"}})
    assert (strict.status, strict.body["reason"]) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("method", "url", "body", "content_type", "code"),
    [
        ("POST", PATH, b'{"foo', "application/json", 400),
        ("POST", PATH, b"[]", "application/json", 400),
        ("POST", PATH, widget(), "text/plain", 415),
        ("POST", PATH, {"metadata": {"name": "c"}, "apiVersion": "example.dev/v1"}, "application/json", 400),
        ("POST", f"{PATH}/a", widget(), "application/json", 405),
        ("PUT", PATH, widget(), "application/json", 400),
        ("PATCH", f"{PATH}/a", {}, "application/strategic-merge-patch+json", 415),
        ("PATCH", f"{PATH}/a", b"{", MERGE, 400),
        ("PATCH", f"{PATH}/a", widget(), APPLY, 422),
        ("DELETE", f"{PATH}/a", {"propagationPolicy": "Zork"}, "application/json", 422),
        ("DELETE", f"{PATH}/a", b"{", "application/json", 400),
        ("DELETE", f"{PATH}/a", b"[]", "application/json", 400),
        ("GET", f"{PATH}?limit=x", None, "", 400),
        ("GET", f"{PATH}?fieldSelector=spec.size%3D3", None, "", 400),
        ("GET", f"{PATH}?continue=abc", None, "", 400),
        ("GET", f"{PATH}?resourceVersion=99999", None, "", 504),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews", None, "", 405),
        ("GET", "/apis/example.dev/v1/namespaces/default/nopes", None, "", 404),
        ("GET", "/apis/example.dev/v2/namespaces/default/widgets", None, "", 404),
        ("GET", f"{PATH}/a/scale", None, "", 404),
        ("GET", "/api/v1/pods/p", None, "", 404),
        ("GET", "/nope", None, "", 404),
        ("OPTIONS", PATH, None, "", 405),
    ],
)  # fmt: skip
async def test_what_is_refused(client: Client, method: str, url: str, body: Any, content_type: str, code: int) -> None:
    answer = await client.call(method, url, body, content_type=content_type)
    assert answer.status == code
    if isinstance(answer.body, dict):
        assert (answer.body["kind"], answer.body["code"], answer.body["status"]) == ("Status", code, "Failure")


async def test_a_body_has_a_limit(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "LIMIT", 100)
    answer = await client.call("POST", PATH, widget(spec={"owner": "a" * 200}))
    assert (answer.status, answer.body["reason"]) == (413, "RequestEntityTooLarge")


async def test_nobody_gets_past_the_health_checks(client: Client) -> None:
    client.token = ""
    for path in ("/healthz", "/livez", "/readyz", "/version"):
        assert (await client.call("GET", path)).status == 200
    for path in (PATH, "/apis", "/metrics", "/openapi/v3"):
        assert (await client.call("GET", path)).status == 401
    client.token = "wrong"
    assert (await client.call("GET", PATH)).body["reason"] == "Unauthorized"


async def test_a_service_account_may_what_its_roles_say(client: Client) -> None:
    answer = await client.call("POST", TOKEN, {"spec": {"expirationSeconds": 600}})
    caller = Client(client.objects, client.app, answer.body["status"]["token"])
    refused = await caller.call("GET", f"{PODS}/zz")
    assert (refused.status, refused.body["message"]) == (
        403,
        'pods "zz" is forbidden: User '
        '"system:serviceaccount:default:default" cannot get resource "pods" in API group "" in the namespace "default"',
    )
    review = await caller.call("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "x"}})
    assert review.body["message"].endswith('in API group "authentication.k8s.io" at the cluster scope')
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    await client.call("POST", f"{RBAC}/roles", {"metadata": {"name": "r"}, "rules": rules})
    subject = {"kind": "ServiceAccount", "name": "default"}
    binding = {"metadata": {"name": "b"}, "roleRef": {"kind": "Role", "name": "r"}, "subjects": [subject]}
    await client.call("POST", f"{RBAC}/rolebindings", binding)
    assert (await caller.call("GET", f"{PODS}/zz")).status == 404
    assert (await caller.call("GET", PODS)).status == 403
    assert (await caller.call("GET", "/apis")).status == 200
    own = {"spec": {"resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "default"}}}
    url = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    await client.call(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        {
            "metadata": {"name": "self"},
            "rules": [
                {"apiGroups": ["authorization.k8s.io"], "resources": ["selfsubjectaccessreviews"], "verbs": ["create"]}
            ],
        },
    )
    await client.call(
        "POST",
        "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
        {
            "metadata": {"name": "self"},
            "roleRef": {"kind": "ClusterRole", "name": "self"},
            "subjects": [{"kind": "Group", "name": "system:authenticated"}],
        },
    )
    assert (await caller.call("POST", url, own)).body["status"]["allowed"] is True


async def test_tokens_are_issued_and_reviewed(client: Client) -> None:
    await client.call("POST", PODS, POD)
    bound = {"kind": "Pod", "name": "p", "apiVersion": "v1"}
    spec = {"audiences": ["mcptasks"], "expirationSeconds": 600, "boundObjectRef": bound}
    issued = await client.call("POST", TOKEN, {"spec": spec})
    assert (issued.status, issued.body["kind"]) == (201, "TokenRequest")
    url, token = "/apis/authentication.k8s.io/v1/tokenreviews", issued.body["status"]["token"]
    body = {"spec": {"token": token, "audiences": ["mcptasks"]}}
    assert (await client.call("POST", url, body)).body["status"]["authenticated"] is True
    await client.call("DELETE", f"{PODS}/p")
    assert "authenticated" not in (await client.call("POST", url, body)).body["status"]


@pytest.mark.parametrize(
    ("spec", "code"),
    [
        ({"expirationSeconds": 6}, 422),
        ({"boundObjectRef": {"kind": "Secret", "name": "s"}}, 422),
        ({"boundObjectRef": {"kind": "Pod", "name": "nope"}}, 404),
        ({"boundObjectRef": {"kind": "Pod", "name": "p", "uid": "another"}}, 422),
    ],
)
async def test_tokens_that_are_not_issued(client: Client, spec: Any, code: int) -> None:
    await client.call("POST", PODS, POD)
    assert (await client.call("POST", TOKEN, {"spec": spec})).status == code


async def test_lists_have_pages_and_forms(client: Client) -> None:
    for name in "abc":
        await client.call("POST", PATH, widget(name))
    first = await client.call("GET", f"{PATH}?limit=2&labelSelector=!x")
    assert (first.body["kind"], len(first.body["items"])) == ("WidgetList", 2)
    rest = await client.call("GET", f"{PATH}?limit=2&continue={first.body['metadata']['continue']}")
    assert [item["metadata"]["name"] for item in rest.body["items"]] == ["c"]
    exact = f"{PATH}?resourceVersionMatch=Exact&resourceVersion={int(first.body['metadata']['resourceVersion']) - 1}"
    assert len((await client.call("GET", exact)).body["items"]) == 2
    table = await client.call("GET", PATH, accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert table.body["kind"] == "Table"
    one = await client.call("GET", f"{PATH}/a", accept="application/json;as=Table;v=v1;g=meta.k8s.io")
    assert len(one.body["rows"]) == 1


async def test_a_collection_can_be_deleted_by_its_labels(client: Client) -> None:
    for name in "abc":
        await client.call("POST", PATH, widget(name) | {"metadata": {"name": name, "labels": {"n": name}}})
    gone = await client.call("DELETE", f"{PATH}?labelSelector=n+in+(a,b)")
    assert [item["metadata"]["name"] for item in gone.body["items"]] == ["a", "b"]
    left = await client.call("GET", PATH)
    assert [item["metadata"]["name"] for item in left.body["items"]] == ["c"]


async def test_what_lingers_is_shown_and_not_called_gone(client: Client) -> None:
    await client.call("POST", PATH, widget() | {"metadata": {"name": "a", "finalizers": ["x.io/y"]}})
    answer = await client.call("DELETE", f"{PATH}/a", {"preconditions": {}, "gracePeriodSeconds": 3})
    assert (answer.body["kind"], "deletionTimestamp" in answer.body["metadata"]) == ("Widget", True)
    assert (await client.call("DELETE", f"{PATH}/a", {"preconditions": {"uid": "zz"}})).status == 409


async def test_deleting_a_job_warns_of_its_pods(client: Client) -> None:
    for options, warnings in (({}, 1), ({"propagationPolicy": "Background"}, 0)):
        spec = {"template": {"spec": POD["spec"] | {"restartPolicy": "Never"}}}
        await client.call("POST", JOBS, {"metadata": {"name": "j"}, "spec": spec})
        assert len((await client.call("DELETE", f"{JOBS}/j", options)).warnings) == warnings


async def test_server_side_apply_says_whether_it_created(client: Client) -> None:
    url = f"{PATH}/a?fieldManager=me"
    first = await client.call("PATCH", url, widget(), content_type=APPLY)
    second = await client.call("PATCH", url, widget(spec={"owner": "ann", "size": 4}), content_type=APPLY)
    assert (first.status, second.status, second.body["spec"]["size"]) == (201, 200, 4)


async def test_logs_are_read_with_their_options(client: Client) -> None:
    await client.call("POST", PODS, POD)
    answer = await client.call("GET", f"{PODS}/p/log?tailLines=5&limitBytes=100&follow=true")
    assert answer.body == "p tail=5 limit=100\nthe end\n"
    assert (await client.call("GET", f"{PODS}/p/log?sinceSeconds=5")).status == 400
    assert (await client.call("GET", f"{PODS}/nope/log")).status == 404


async def test_watches_begin_at_a_revision_or_with_what_is_there(client: Client) -> None:
    made = await client.call("POST", PATH, widget())
    (event,) = await client.lines(f"{PATH}?watch=1", 1)
    assert (event["type"], event["object"]["metadata"]["name"]) == ("ADDED", "a")
    await client.call("POST", PATH, widget("b"))
    since = made.body["metadata"]["resourceVersion"]
    (event,) = await client.lines(f"{PATH}?watch=true&resourceVersion={since}", 1)
    assert event["object"]["metadata"]["name"] == "b"
    (event,) = await client.lines(f"{PATH}?watch=1&sendInitialEvents=true&fieldSelector=metadata.name%3Db", 1)
    assert event["object"]["metadata"]["name"] == "b"
    (event,) = await client.lines(f"{PATH}/b?watch=1", 1)
    assert event["object"]["metadata"]["name"] == "b"
    (event,) = await client.lines(f"{PATH}?watch=1&resourceVersion=1", 1, accept="application/json;as=Table;v=v1")
    assert event["object"]["kind"] in ("Table", "Status")


async def test_a_live_watch_hears_of_a_write(client: Client) -> None:
    revision = client.objects.revision
    waiting = asyncio.create_task(client.lines(f"{PATH}?watch=1&resourceVersion={revision}", 1))
    await asyncio.sleep(0)
    await client.call("POST", PATH, widget())
    assert [event["type"] for event in await asyncio.wait_for(waiting, 5)] == ["ADDED"]


async def test_requests_are_counted(client: Client) -> None:
    await client.call("POST", PATH, widget())
    await client.call("GET", f"{PATH}/nope")
    await client.call("PATCH", f"{PATH}/a/status", {"status": {}}, content_type=MERGE)
    counted = client.app.requests
    assert counted["create", "widgets", "", "tests"] == 1
    assert counted["patch", "widgets", "status", "tests"] == 1
    text = (await client.call("GET", "/metrics")).body
    assert 'apiserver_request_total{verb="get",resource="widgets",subresource="",code="404"} 1' in text
    assert 'verb="create",resource="widgets",subresource="",code="201"} 1' in text


async def test_a_fault_of_ours_is_a_status_too(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client.objects, "get", lambda *_: 1 / 0)
    answer = await client.call("GET", f"{PATH}/a")
    assert (answer.status, answer.body["reason"]) == (500, "InternalError")


async def test_nothing_but_http_is_served(client: Client) -> None:
    async def never(*_: Any) -> Any:
        raise AssertionError

    await client.app({"type": "lifespan"}, never, never)


async def test_an_aggregated_discovery_says_what_it_is(client: Client) -> None:
    accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    answer = await client.call("GET", "/apis", accept=accept)
    assert dict(answer.headers)[b"content-type"].decode() == accept
    assert json.dumps(answer.body)
