"""What a write means: names, uids, generations, preconditions, schemas, rules, status apart from the rest, deletion.

Every call is synchronous and runs on one event loop, so each is atomic.
"""

import base64
import copy
import json
import re
import secrets
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from mcptasks_local import errors, rules, schemas
from mcptasks_local.errors import ApiError, Cause, Object
from mcptasks_local.patches import JSON_PATCH, apply_patch
from mcptasks_local.resources import BUILT_IN, Resource, of_definition
from mcptasks_local.selectors import matcher
from mcptasks_local.storage import Event, Storage

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LONGEST = {"jobs.batch": 63, "namespaces": 63}
_SERVER_FIELDS = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
OBJECT_LIMIT = 1_500_000
"""Bytes of one object, where etcd would refuse it."""


class Objects:
    """The objects of one control plane."""

    def __init__(self, storage: Storage, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._storage, self._clock = storage, clock
        self._resources = {resource.id: resource for resource in BUILT_IN}
        self.grace: Callable[[Resource, Object], int | None] = lambda _resource, _item: None
        """Asked before an object goes: the seconds that its processes get to end, or None if nothing holds it back."""
        for crd in storage.of(CRDS):
            self._register(crd)

    @property
    def revision(self) -> int:
        """The newest resourceVersion."""
        return self._storage.revision

    def resources(self) -> list[Resource]:
        """All that are served."""
        return list(self._resources.values())

    def resource(self, name: str) -> Resource:
        """By id: ``jobs.batch``, ``pods``, ``mcptasks.mcptasks.dev``.

        Raises:
            ApiError: 404, it is not served.
        """
        try:
            return self._resources[name]
        except KeyError:
            raise ApiError(404, "NotFound", "the server could not find the requested resource") from None

    def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """One object; never change it.

        Raises:
            ApiError: 404
        """
        if (item := self._storage.get(resource.id, namespace, name)) is None:
            raise errors.not_found(resource.group, resource.plural, name)
        return item

    def list(
        self, resource: Resource, namespace: str | None = None, labels: str | None = None, fields: str | None = None
    ) -> tuple[list[Object], int]:
        """What matches, and the revision that it is the state of.

        Raises:
            ApiError: 400, a selector can't be read.
        """
        matches = matcher(resource, labels, fields)
        return [item for item in self._storage.of(resource.id, namespace) if matches(item)], self.revision

    def watch(
        self, resource: Resource | None = None, namespace: str | None = None, since: int | None = None
    ) -> AsyncIterator[Event]:
        """Events after ``since``, or from now.

        Raises:
            ApiError: 410
        """
        events = self._storage.watch(resource.id if resource else None, since)
        return events if namespace is None else _within(events, namespace)

    def create(
        self, resource: Resource, namespace: str, item: Object, *, dry_run: bool = False, strict: bool = False
    ) -> Object:
        """Store a new object.

        Raises:
            ApiError: 400, 404 (no such namespace), 409, 422
        """
        item = copy.deepcopy(item)
        meta = self._envelope(resource, namespace, item)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = meta["generateName"] + secrets.token_hex(3)[:5]
        name = meta.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name) or len(name) > _LONGEST.get(resource.id, 253):
            message = f'Invalid value: "{name or ""}": a lowercase RFC 1123 subdomain is required'
            raise errors.invalid(
                resource.group, resource.kind, name or "", [Cause("FieldValueInvalid", message, "metadata.name")]
            )
        if resource.namespaced and self._storage.get("namespaces", "", namespace) is None:
            raise errors.not_found("", "namespaces", namespace)
        if self._storage.get(resource.id, namespace, name) is not None:
            raise errors.already_exists(resource.group, resource.plural, name)
        for field in _SERVER_FIELDS:
            meta.pop(field, None)
        meta.pop("resourceVersion", None)
        if resource.status and resource.custom:
            item.pop("status", None)
        item = self._admitted(resource, item, None, strict="BadRequest" if strict else None)
        item["metadata"] |= {"uid": str(uuid.uuid4()), "creationTimestamp": self._now()}
        if resource.custom or resource.status:
            item["metadata"]["generation"] = 1
        return item if dry_run else self._put(resource, namespace, item)

    def replace(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        item: Object,
        *,
        subresource: str | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Object:
        """Store the next state of an object; a resourceVersion in it must be the present one.

        Raises:
            ApiError: 400, 404, 409, 422
        """
        old = self.get(resource, namespace, name)
        item = copy.deepcopy(item)
        self._envelope(resource, namespace, item)
        return self._update(resource, old, item, subresource, dry_run, "BadRequest" if strict else None)

    def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        patch: Any,
        *,
        content_type: str = "application/merge-patch+json",
        subresource: str | None = None,
        dry_run: bool = False,
        strict: bool = False,
    ) -> Object:
        """Change an object.

        Raises:
            ApiError: 400, 404, 409, 415, 422
        """
        old = self.get(resource, namespace, name)
        item = apply_patch(copy.deepcopy(old), patch, content_type, custom=resource.custom is not None)
        if content_type != JSON_PATCH and not (patch.get("metadata") or {}).get("resourceVersion"):
            item["metadata"].pop("resourceVersion", None)  # a patch that names none is not guarded by one
        return self._update(resource, old, item, subresource, dry_run, "Invalid" if strict else None)

    def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation: str | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Delete an object, or mark it if finalizers or its processes hold it back. Returns its last state.

        Raises:
            ApiError: 404, 409 (a precondition does not hold)
        """
        item = self.get(resource, namespace, name)
        meta = item["metadata"]
        for word, given, there in (
            ("UID", uid, meta["uid"]),
            ("ResourceVersion", resource_version, meta["resourceVersion"]),
        ):
            if given is not None and given != there:
                why = f"the {word} in the precondition ({given}) does not match the {word} in record ({there})"
                raise errors.conflict(resource.group, resource.plural, name, f"Precondition failed: {why}")
        if dry_run:
            return item
        # batch/v1 orphans by default, for history's sake.
        if propagation == "Orphan" or (propagation is None and resource.id == "jobs.batch"):
            self._orphan(meta["uid"])
        grace = self.grace(resource, item) if grace_seconds != 0 else None
        if meta.get("finalizers") or grace is not None:
            if "deletionTimestamp" in meta:
                return item
            marked = copy.deepcopy(item)
            seconds = grace_seconds if grace_seconds is not None else grace or 0
            marked["metadata"] |= {"deletionTimestamp": self._now(), "deletionGracePeriodSeconds": seconds}
            return self._put(resource, namespace, marked)
        return self._remove(resource, namespace, name)

    def dependents(self, uid: str) -> Sequence[tuple[Resource, Object]]:
        """What names ``uid`` as an owner."""
        return [
            (self._resources[name], item)
            for name in self._storage.resources()
            if name in self._resources
            for item in self._storage.of(name)
            if any(owner.get("uid") == uid for owner in item["metadata"].get("ownerReferences") or ())
        ]

    def _update(
        self, resource: Resource, old: Object, item: Object, subresource: str | None, dry_run: bool, strict: str | None
    ) -> Object:
        meta, before = item["metadata"], old["metadata"]
        name, namespace = before["name"], before.get("namespace", "")
        if (version := meta.get("resourceVersion")) and version != before["resourceVersion"]:
            raise errors.modified(resource.group, resource.plural, name)
        if meta.get("uid") not in (None, before["uid"]):
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {before['uid']}"
            raise errors.conflict(resource.group, resource.plural, name, why)
        if meta.get("name") != name:
            raise errors.bad_request(
                f"the name of the object ({meta.get('name')}) does not match the name on the URL ({name})"
            )
        item = _status_apart(resource, old, item, subresource)
        meta = item["metadata"]
        for field in (*_SERVER_FIELDS, "resourceVersion"):
            meta.pop(field, None)
            if field in before:
                meta[field] = before[field]
        item = self._admitted(resource, item, old, strict=strict)
        if _specified(item) != _specified(old) and "generation" in before:
            item["metadata"]["generation"] = before["generation"] + 1
        if item == old:
            return old
        if dry_run:
            return item
        if (
            "deletionTimestamp" in item["metadata"]
            and not item["metadata"].get("finalizers")
            and before.get("finalizers")
        ):
            return self._remove(resource, namespace, name)
        return self._put(resource, namespace, item)

    def _envelope(self, resource: Resource, namespace: str, item: Object) -> Object:
        """Check and fill in apiVersion, kind and metadata."""
        for field, value in (("apiVersion", resource.api_version), ("kind", resource.kind)):
            if item.setdefault(field, value) != value:
                raise errors.bad_request(f"the {field} of the object ({item[field]}) is not the endpoint's ({value})")
        meta = item.setdefault("metadata", {})
        if not isinstance(meta, dict):
            raise errors.bad_request("metadata must be an object")
        if resource.namespaced and meta.setdefault("namespace", namespace) != namespace:
            raise errors.bad_request(
                f"the namespace of the provided object does not match the namespace sent on the request "
                f"({meta['namespace']} and {namespace})"
            )
        if not resource.namespaced:
            meta.pop("namespace", None)
        return meta

    def _admitted(self, resource: Resource, item: Object, old: Object | None, *, strict: str | None) -> Object:
        """What will be stored: pruned, with defaults, and found valid."""
        item["metadata"].pop("managedFields", None)
        if resource.id == "secrets" and (texts := item.pop("stringData", None)):
            item.setdefault("data", {}).update({k: base64.b64encode(v.encode()).decode() for k, v in texts.items()})
        if (schema := resource.schema) is not None:
            item, dropped = schemas.shaped(schema, item)
            name = item["metadata"].get("name", "")
            if dropped and strict:
                said = "strict decoding error: " + ", ".join(f'unknown field "{path}"' for path in dropped)
                raise ApiError(400 if strict == "BadRequest" else 422, strict, said)
            if wrong := schemas.causes(schema, item) or rules.broken(schema, item, old):
                raise errors.invalid(resource.group, resource.kind, name, wrong)
        if len(json.dumps(item)) > OBJECT_LIMIT:
            raise ApiError(500, "", "etcdserver: request is too large")
        return item

    def _put(self, resource: Resource, namespace: str, item: Object) -> Object:
        stored = self._storage.put(resource.id, namespace, item["metadata"]["name"], item)
        if resource.id == CRDS:
            self._register(stored)
            if not (stored.get("status") or {}).get("conditions"):
                stored = self._established(resource, stored)
        return stored

    def _remove(self, resource: Resource, namespace: str, name: str) -> Object:
        if resource.id == "namespaces":
            for kind in list(self._resources.values()):
                for item in self._storage.of(kind.id, name) if kind.namespaced else ():
                    self.delete(kind, name, item["metadata"]["name"], propagation="Background")
        if resource.id == CRDS:
            for kind in of_definition(self.get(resource, namespace, name)):
                for item in self._storage.of(kind.id):
                    meta = item["metadata"]
                    self.delete(kind, meta.get("namespace", ""), meta["name"], propagation="Background")
                self._resources.pop(kind.id, None)
        last = self._storage.remove(resource.id, namespace, name)
        if last is None:
            raise errors.not_found(resource.group, resource.plural, name)
        return last

    def _register(self, crd: Object) -> None:
        for resource in of_definition(crd):
            self._resources[resource.id] = resource

    def _established(self, resource: Resource, crd: Object) -> Object:
        conditions = [
            {"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": self._now()}
            for kind, reason, message in (
                ("NamesAccepted", "NoConflicts", "no conflicts found"),
                ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
            )
        ]
        status = {
            "conditions": conditions,
            "acceptedNames": crd["spec"]["names"],
            "storedVersions": [version["name"] for version in crd["spec"]["versions"] if version.get("storage")],
        }
        return self._storage.put(resource.id, "", crd["metadata"]["name"], {**copy.deepcopy(crd), "status": status})

    def _orphan(self, uid: str) -> None:
        for resource, item in self.dependents(uid):
            freed = copy.deepcopy(item)
            owners = [owner for owner in freed["metadata"]["ownerReferences"] if owner.get("uid") != uid]
            freed["metadata"]["ownerReferences"] = owners
            self._put(resource, item["metadata"].get("namespace", ""), freed)

    def _now(self) -> str:
        return self._clock().astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def _within(events: AsyncIterator[Event], namespace: str) -> AsyncIterator[Event]:
    async for event in events:
        if event.object["metadata"].get("namespace") == namespace:
            yield event


def _status_apart(resource: Resource, old: Object, item: Object, subresource: str | None) -> Object:
    """A write to the object leaves the status as it was; a write to the status leaves all else."""
    if not resource.status:
        return item
    if subresource == "status":
        out = copy.deepcopy(old)
        out["metadata"]["resourceVersion"] = item["metadata"].get("resourceVersion")
        source = item
    else:
        out, source = item, old
    out.pop("status", None)
    if "status" in source:
        out["status"] = source["status"]
    return out


def _specified(item: Object) -> Object:
    return {key: value for key, value in item.items() if key not in ("metadata", "status")}
