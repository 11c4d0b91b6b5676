"""Who asks: the admin token, and ServiceAccount tokens issued here (JWT, HS256, with Kubernetes' own claims)."""

import base64
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from hashlib import sha256

from mcptasks_crds.errors import McpTasksError
from mcptasks_local.errors import ApiError, Object, bad_request, unauthorized
from mcptasks_local.objects import Objects

ISSUER = "https://kubernetes.default.svc"
API_AUDIENCE = ISSUER


@dataclass(frozen=True, slots=True)
class User:
    """An authenticated caller."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: dict[str, list[str]] = field(default_factory=dict)
    audiences: tuple[str, ...] = ()


ADMIN = User("admin", ("system:masters", "system:authenticated"))


class InvalidToken(McpTasksError):
    """A bearer token that is not good here; its text says why, as far as a caller may know."""


class Identity:
    """Issues and checks tokens. ``key`` signs; ``admin_token`` is the one in the kubeconfig."""

    def __init__(self, objects: Objects, key: bytes, admin_token: str, clock: Callable[[], float] = time.time) -> None:
        self._objects, self._key, self._admin, self._clock = objects, key, admin_token, clock

    def issue(
        self, namespace: str, service_account: str, *, audiences: list[str], seconds: int, pod: Object | None = None
    ) -> tuple[str, float]:
        """A token for a ServiceAccount, bound to ``pod`` if one is given; and when it expires, in epoch seconds."""
        now = int(self._clock())
        account = self._objects.get(self._objects.resource("serviceaccounts"), namespace, service_account)
        bound: Object = {
            "namespace": namespace,
            "serviceaccount": {"name": service_account, "uid": account["metadata"]["uid"]},
        }
        if pod is not None:
            bound["pod"] = {"name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
        claims = {
            "iss": ISSUER,
            "sub": f"system:serviceaccount:{namespace}:{service_account}",
            "aud": audiences,
            "iat": now,
            "nbf": now,
            "exp": now + seconds,
            "jti": secrets.token_hex(16),
            "kubernetes.io": bound,
        }
        signed = f"{_encode({'alg': 'HS256', 'typ': 'JWT'})}.{_encode(claims)}"
        return f"{signed}.{self._signature(signed)}", now + seconds

    def request_user(self, authorization: str | None) -> User | None:
        """The caller of an API request; None = anonymous.

        Raises:
            ApiError: 401, a token that is not good here.
        """
        if not authorization:
            return None
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() == "bearer":
            if hmac.compare_digest(token.encode(), self._admin.encode()):
                return ADMIN
            if (user := self.user(token, [API_AUDIENCE])) is not None:
                return user
        raise unauthorized()

    def user(self, token: str, audiences: list[str]) -> User | None:
        """The bearer of a ServiceAccount token that is good for one of ``audiences``; None if it is not."""
        try:
            return self._bearer(token, audiences)
        except InvalidToken:
            return None

    def review(self, spec: Object) -> Object:
        """The status of a TokenReview.

        Raises:
            ApiError: 400, no token
        """
        if not spec.get("token"):
            raise bad_request("token is required for TokenReview in authentication")
        token, audiences = str(spec["token"]), list(spec.get("audiences") or [API_AUDIENCE])
        if hmac.compare_digest(token.encode(), self._admin.encode()):
            user = replace(ADMIN, audiences=tuple(a for a in audiences if a == API_AUDIENCE))
        else:
            try:
                user = self._bearer(token, audiences)
            except InvalidToken as error:
                said = f"[invalid bearer token, {error}]" if str(error) else "invalid bearer token"
                return {"user": {}, "error": said}
        who = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
        shown = {key: value for key, value in who.items() if value}
        return {"authenticated": True, "user": shown, "audiences": list(user.audiences)}

    def _bearer(self, token: str, audiences: list[str]) -> User:
        signed, _, signature = token.rpartition(".")
        if signed.count(".") != 1:
            raise InvalidToken
        if not hmac.compare_digest(self._signature(signed).encode(), signature.encode(errors="replace")):
            raise InvalidToken("the signature is not ours")
        claims = json.loads(_decode(signed.partition(".")[2]))
        shared = tuple(audience for audience in audiences if audience in claims["aud"])
        if not shared:
            given, wanted = json.dumps(claims["aud"]), json.dumps(audiences)
            raise InvalidToken(f"token audiences {given} is invalid for the target audiences {wanted}")
        if claims["exp"] <= self._clock():
            raise InvalidToken("service account token has expired")
        bound = claims["kubernetes.io"]
        namespace, account, pod = bound["namespace"], bound["serviceaccount"], bound.get("pod")
        extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}
        self._still("serviceaccounts", namespace, account)
        if pod is not None:
            self._still("pods", namespace, pod)
            extra["authentication.kubernetes.io/pod-name"] = [pod["name"]]
            extra["authentication.kubernetes.io/pod-uid"] = [pod["uid"]]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return User(claims["sub"], groups, account["uid"], extra, shared)

    def _still(self, plural: str, namespace: str, bound: Object) -> None:
        """A token ends with what it is bound to."""
        try:
            there = self._objects.get(self._objects.resource(plural), namespace, bound["name"])
        except ApiError:
            there = None
        if there is None or there["metadata"]["uid"] != bound["uid"]:
            raise InvalidToken("service account token has been invalidated")

    def _signature(self, signed: str) -> str:
        return _text(hmac.new(self._key, signed.encode(errors="replace"), sha256).digest())


def _encode(value: Object) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
