import base64
import json
from typing import Any

import pytest

from mcptasks_local.errors import ApiError
from mcptasks_local.identity import API_AUDIENCE, Identity
from mcptasks_local.objects import Objects
from tests.unit.local.widgets import ADMIN, KEY, new_objects

NOW = 1_800_000_000.0


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def objects() -> Objects:
    return new_objects()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def identity(objects: Objects, clock: Clock) -> Identity:
    return Identity(objects, KEY, ADMIN, clock)


def pod(objects: Objects) -> Any:
    body = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
    return objects.create(objects.resource("pods"), "default", body)


def claims(token: str) -> Any:
    return json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))


def test_a_token_says_what_kubernetes_would_say(objects: Objects, identity: Identity) -> None:
    bound = pod(objects)
    token, expires = identity.issue("default", "default", audiences=["mcptasks"], seconds=3600, pod=bound)
    said = claims(token)
    assert (said["sub"], said["aud"], said["exp"]) == ("system:serviceaccount:default:default", ["mcptasks"], expires)
    account = objects.get(objects.resource("serviceaccounts"), "default", "default")
    assert said["kubernetes.io"] == {
        "namespace": "default",
        "serviceaccount": {"name": "default", "uid": account["metadata"]["uid"]},
        "pod": {"name": "p", "uid": bound["metadata"]["uid"]},
    }


def test_a_review_answers_as_kubernetes_does(objects: Objects, identity: Identity) -> None:
    bound = pod(objects)
    token, _ = identity.issue("default", "default", audiences=["mcptasks"], seconds=3600, pod=bound)
    status = identity.review({"token": token, "audiences": ["mcptasks", "z"]})
    assert (status["authenticated"], status["audiences"]) == (True, ["mcptasks"])
    assert status["user"]["username"] == "system:serviceaccount:default:default"
    assert status["user"]["groups"] == [
        "system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]  # fmt: skip
    extra = status["user"]["extra"]
    assert extra["authentication.kubernetes.io/pod-name"] == ["p"]
    assert extra["authentication.kubernetes.io/pod-uid"] == [bound["metadata"]["uid"]]


def test_tokens_that_are_not_good(identity: Identity, clock: Clock) -> None:
    token, _ = identity.issue("default", "default", audiences=["mcptasks"], seconds=3600)
    said = '[invalid bearer token, token audiences ["mcptasks"] is invalid for the target audiences ["x"]]'
    assert identity.review({"token": token, "audiences": ["x"]}) == {"user": {}, "error": said}
    assert API_AUDIENCE in identity.review({"token": token})["error"]
    for bad in ("garbage", token[:-3] + "abc", token + "x", "a.b.c", "ä.ö.ü"):
        assert "authenticated" not in identity.review({"token": bad, "audiences": ["mcptasks"]})
    assert identity.user(token, ["mcptasks"]) is not None
    clock.now += 3600
    assert "expired" in identity.review({"token": token, "audiences": ["mcptasks"]})["error"]
    with pytest.raises(ApiError, match="token is required"):
        identity.review({})


def test_a_token_ends_with_its_pod(objects: Objects, identity: Identity) -> None:
    token, _ = identity.issue("default", "default", audiences=["mcptasks"], seconds=3600, pod=pod(objects))
    objects.delete(objects.resource("pods"), "default", "p")
    ended = {"user": {}, "error": "[invalid bearer token, service account token has been invalidated]"}
    assert identity.review({"token": token, "audiences": ["mcptasks"]}) == ended
    pod(objects)  # another pod of the name is another pod
    assert identity.review({"token": token, "audiences": ["mcptasks"]}) == ended


def test_a_token_ends_with_its_service_account(objects: Objects, identity: Identity) -> None:
    token, _ = identity.issue("default", "default", audiences=["mcptasks"], seconds=3600)
    accounts = objects.resource("serviceaccounts")
    objects.delete(accounts, "default", "default")
    objects.create(accounts, "default", {"metadata": {"name": "default"}})
    assert identity.user(token, ["mcptasks"]) is None
    with pytest.raises(ApiError, match="not found"):
        identity.issue("default", "nope", audiences=["mcptasks"], seconds=3600)


def test_who_asks(identity: Identity) -> None:
    assert identity.request_user(None) is None
    admin = identity.request_user(f"Bearer {ADMIN}")
    assert admin is not None
    assert "system:masters" in admin.groups
    token, _ = identity.issue("default", "default", audiences=[API_AUDIENCE], seconds=3600)
    caller = identity.request_user(f"bearer {token}")
    assert caller is not None
    assert caller.name == "system:serviceaccount:default:default"
    other, _ = identity.issue("default", "default", audiences=["mcptasks"], seconds=3600)
    for bad in ("Bearer nope", "Basic abc", f"Bearer {other}"):
        with pytest.raises(ApiError) as told:
            identity.request_user(bad)
        assert told.value.code == 401


def test_the_admin_token_can_be_reviewed(identity: Identity) -> None:
    status = identity.review({"token": ADMIN})
    assert (status["user"]["username"], status["audiences"]) == ("admin", [API_AUDIENCE])
