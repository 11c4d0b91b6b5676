"""Requests that are answered and forgotten: TokenReview, SubjectAccessReview, TokenRequest."""

from datetime import UTC, datetime

from mcptasks_local.access import Access
from mcptasks_local.errors import Cause, Object, invalid
from mcptasks_local.identity import API_AUDIENCE, Identity, User
from mcptasks_local.objects import Objects

KINDS = ("TokenReview", "SubjectAccessReview", "SelfSubjectAccessReview")
LEAST_SECONDS = 600
"""Kubernetes issues no token for less."""


def review(kind: str, body: Object, user: User, identity: Identity, access: Access) -> Object:
    """A review with its status filled in, for the caller ``user``.

    Raises:
        ApiError: 400, 422
    """
    spec = body.get("spec") or {}
    match kind:
        case "TokenReview":
            status = identity.review(spec)
        case "SubjectAccessReview":
            status = access.review(spec)
        case _:
            status = access.review({**spec, "user": user.name, "groups": list(user.groups)})
    group = "authentication" if kind == "TokenReview" else "authorization"
    head = {"kind": kind, "apiVersion": f"{group}.k8s.io/v1", "metadata": body.get("metadata") or {}}
    return {**head, "spec": spec, "status": status}


def token(objects: Objects, identity: Identity, namespace: str, name: str, body: Object) -> Object:
    """Answer a TokenRequest for a ServiceAccount.

    Raises:
        ApiError: 404, no such ServiceAccount, or bound pod; 409, that pod has another uid; 422
    """
    objects.get(objects.resource("serviceaccounts"), namespace, name)
    spec = body.get("spec") or {}
    seconds = spec.get("expirationSeconds") or 3600
    if seconds < LEAST_SECONDS:
        words = f"Invalid value: {seconds}: may not specify a duration less than 10 minutes"
        cause = Cause("FieldValueInvalid", words, "spec.expirationSeconds")
        raise invalid("authentication.k8s.io", "TokenRequest", "", [cause])
    bound, pod = spec.get("boundObjectRef"), None
    if bound:
        if bound.get("kind") != "Pod":
            words = f'Invalid value: "{bound.get("kind")}": only Pods can be bound here'
            cause = Cause("FieldValueInvalid", words, "spec.boundObjectRef.kind")
            raise invalid("authentication.k8s.io", "TokenRequest", "", [cause])
        pod = objects.get(objects.resource("pods"), namespace, bound.get("name", ""))
        if bound.get("uid") not in (None, "", pod["metadata"]["uid"]):
            words = f'Invalid value: "{bound["uid"]}": the pod has another uid'
            cause = Cause("FieldValueInvalid", words, "spec.boundObjectRef.uid")
            raise invalid("authentication.k8s.io", "TokenRequest", "", [cause])
    audiences = spec.get("audiences") or [API_AUDIENCE]
    text, expires = identity.issue(namespace, name, audiences=audiences, seconds=seconds, pod=pod)
    at = datetime.fromtimestamp(expires, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {"token": text, "expirationTimestamp": at},
    }
