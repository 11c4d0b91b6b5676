"""Who asks: the admin token, and ServiceAccount tokens issued here (JWT, HS256, with Kubernetes' own claims)."""

import base64
import hmac
import json
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256

from mcptasks_local.errors import ApiError, Object, unauthorized
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


class Identity:
    """Issues and checks tokens. ``key`` signs; ``admin_token`` is the one in the kubeconfig."""

    def __init__(self, objects: Objects, key: bytes, admin_token: str, clock: Callable[[], float] = time.time) -> None:
        self._objects, self._key, self._admin, self._clock = objects, key, admin_token, clock

    def issue(
        self, namespace: str, service_account: str, *, audiences: list[str], seconds: int, pod: Object | None = None
    ) -> tuple[str, float]:
        """A token for a ServiceAccount, bound to ``pod`` if one is given; and when it expires, in epoch seconds."""
        now = int(self._clock())
        bound: Object = {"namespace": namespace, "serviceaccount": {"name": service_account, "uid": ""}}
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
        signed, _, signature = token.rpartition(".")
        if not hmac.compare_digest(self._signature(signed).encode(), signature.encode(errors="replace")):
            return None
        claims = json.loads(_decode(signed.partition(".")[2]))
        shared = tuple(audience for audience in audiences if audience in claims["aud"])
        if not shared or claims["exp"] <= self._clock():
            return None
        bound = claims["kubernetes.io"]
        namespace = bound["namespace"]
        extra = {"authentication.kubernetes.io/credential-id": [f"JTI={claims['jti']}"]}
        if (pod := bound.get("pod")) is not None:
            try:
                there = self._objects.get(self._objects.resource("pods"), namespace, pod["name"])
            except ApiError:
                return None
            if there["metadata"]["uid"] != pod["uid"]:
                return None
            extra["authentication.kubernetes.io/pod-name"] = [pod["name"]]
            extra["authentication.kubernetes.io/pod-uid"] = [pod["uid"]]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated")
        return User(claims["sub"], groups, bound["serviceaccount"]["uid"], extra, shared)

    def review(self, spec: Object) -> Object:
        """The status of a TokenReview."""
        user = self.user(str(spec.get("token") or ""), list(spec.get("audiences") or [API_AUDIENCE]))
        if user is None:
            return {"user": {}, "error": "invalid bearer token"}
        return {
            "authenticated": True,
            "user": {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra},
            "audiences": list(user.audiences),
        }

    def _signature(self, signed: str) -> str:
        return _text(hmac.new(self._key, signed.encode(errors="replace"), sha256).digest())


def _encode(value: Object) -> str:
    return _text(json.dumps(value, separators=(",", ":")).encode())


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
