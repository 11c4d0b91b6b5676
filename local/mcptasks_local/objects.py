"""What a write means: names, uids, generations, preconditions, schemas, rules, status apart from the rest, deletion.

Every call is synchronous and runs on one event loop, so each is atomic.
"""

import copy
import json
import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from mcptasks_local import errors, metadata, rules, schemas
from mcptasks_local.admission import admit
from mcptasks_local.applying import applied
from mcptasks_local.errors import ApiError, Cause, Object
from mcptasks_local.patches import APPLY, accepted, apply_patch
from mcptasks_local.resources import BUILT_IN, Resource, established, of_definition
from mcptasks_local.selectors import matcher
from mcptasks_local.storage import Event, Storage
from mcptasks_local.updates import specified, status_apart, unstamped

CRDS = "customresourcedefinitions.apiextensions.k8s.io"
_PROTECTED = ("default", "kube-system")
LEASES = "leases.coordination.k8s.io"
"""A PUT creates one."""
OBJECT_LIMIT = 1_500_000
"""Bytes of one object, where etcd would refuse it."""


class Objects:
    """The objects of one control plane."""

    def __init__(self, storage: Storage, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._storage, self.clock = storage, clock
        self._resources = {resource.id: resource for resource in BUILT_IN}
        self.grace: Callable[[Resource, Object], int | None] = lambda _resource, _item: None
        """Asked before an object goes: the seconds that its processes get to end, or None if nothing holds it back."""
        self.warnings: list[str] = []
        """What the latest write would like to be said: fields that no schema knows."""
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

    def served(self, group: str, version: str, plural: str) -> Resource | None:
        """The kind behind a URL, or None."""
        found = self._resources.get(f"{plural}.{group}" if group else plural)
        return found if found is not None and found.version == version else None

    def holds(self, resource: Resource, namespace: str, name: str) -> bool:
        """Whether there is such an object."""
        return self._storage.get(resource.id, namespace, name) is not None

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

    def list_as_of(
        self, resource: Resource, namespace: str | None, labels: str | None, fields: str | None, revision: int
    ) -> Sequence[Object]:
        """What matched at an earlier revision, by namespace and name.

        Raises:
            ApiError: 400, a selector can't be read; 410, that revision is no longer known.
        """
        matches = matcher(resource, labels, fields)
        items = sorted(self._storage.as_of(resource.id, revision).items())
        return [item for key, item in items if namespace in (None, key[0]) and matches(item)]

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
        item = self._envelope(resource, namespace, item)
        meta = item["metadata"]
        if meta.get("resourceVersion"):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        for field in metadata.SERVER_FIELDS:
            meta.pop(field, None)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = metadata.generate(meta["generateName"])
        name = meta.get("name", "")
        if resource.namespaced:
            place = self._storage.get("namespaces", "", namespace)
            if place is None:
                raise errors.not_found("", "namespaces", namespace)
            if "deletionTimestamp" in place["metadata"]:
                why = f"unable to create new content in namespace {namespace} because it is being terminated"
                raise errors.forbidden(resource.group, resource.plural, name, why)
        if resource.status and resource.custom:
            item.pop("status", None)
        meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": self.now()}
        if resource.custom or (resource.status and resource.id != "namespaces"):
            meta["generation"] = 1
        item = self._admitted(resource, item, None, strict="BadRequest" if strict else None)
        if self._storage.get(resource.id, namespace, name) is not None:
            raise errors.already_exists(resource.group, resource.plural, name)
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
        item = self._envelope(resource, namespace, item)
        meta = item["metadata"]
        if meta.get("name", name) != name:
            raise _misnamed(meta["name"], name)
        if resource.id == LEASES and not self.holds(resource, namespace, name):
            return self.create(resource, namespace, item, dry_run=dry_run, strict=strict)
        old = self.get(resource, namespace, name)
        if not meta.get("resourceVersion") and (resource.custom or resource.id == CRDS):
            message = "Invalid value: 0: must be specified for an update"
            cause = Cause("FieldValueInvalid", message, "metadata.resourceVersion")
            raise errors.invalid(resource.group, resource.plural, name, [cause])
        if meta.get("uid") not in (None, old["metadata"]["uid"]):
            why = (
                f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {old['metadata']['uid']}"
            )
            raise errors.conflict(resource.group, resource.plural, name, why)
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
        manager: str = "",
        force: bool = False,
    ) -> Object:
        """Change an object; a server-side apply (``manager`` says by whom) creates it if there is none.

        Raises:
            ApiError: 400, 404, 409, 415, 422
        """
        applying = accepted(content_type, custom=resource.custom is not None) == APPLY
        old = self._storage.get(resource.id, namespace, name)
        if applying:
            if not isinstance(patch, dict):
                raise errors.bad_request("error decoding YAML: an applied configuration is an object")
            self._declared(resource, namespace, name, patch)
            patched = applied(old, patch, schema=resource.schema, manager=manager, force=force, now=self.now())
            if old is None:
                patched["metadata"].setdefault("name", name)
                return self.create(resource, namespace, patched, dry_run=dry_run, strict=strict)
        else:
            old = self.get(resource, namespace, name)
            patched = apply_patch(copy.deepcopy(old), patch, content_type, custom=resource.custom is not None)
        item = self._envelope(resource, namespace, patched)
        if applying and unstamped(item) == unstamped(old):
            return old  # nothing but the time of the apply is new
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
                end = "deleted and then recreated" if word == "UID" else "modified"
                why = f"the {word} in the precondition ({given}) does not match the {word} in record ({there}). "
                raise errors.conflict(resource.group, resource.kind, name, f"{why}The object might have been {end}")
        if resource.id == "namespaces" and name in _PROTECTED:
            raise errors.forbidden("", "namespaces", name, "this namespace may not be deleted")
        if dry_run:
            return item
        # batch/v1 orphans by default, for history's sake.
        if propagation == "Orphan" or (propagation is None and resource.id == "jobs.batch"):
            self._orphan(meta["uid"])
        if propagation == "Foreground":
            for kind, dependent in self.dependents(meta["uid"]):
                below = dependent["metadata"]
                self.delete(kind, below.get("namespace", ""), below["name"], propagation="Foreground")
            item = self.get(resource, namespace, name)
            meta = item["metadata"]
        wanted = self.grace(resource, item) if grace_seconds != 0 else None
        if resource.id == "namespaces":
            return self._end_namespace(item)
        if not meta.get("finalizers") and wanted is None:
            return self._remove(resource, namespace, name)
        grace = 0 if wanted is None else wanted if grace_seconds is None else grace_seconds
        if "deletionTimestamp" in meta and meta["deletionGracePeriodSeconds"] <= grace:
            return item
        marked = copy.deepcopy(item)
        # deletionTimestamp is when the grace period will be over, not when the delete was asked for.
        at = self.clock() + timedelta(seconds=grace)
        marked["metadata"] |= {"deletionTimestamp": _stamp(at), "deletionGracePeriodSeconds": grace}
        if "generation" in meta and "deletionTimestamp" not in meta:
            marked["metadata"]["generation"] += 1
        return self._put(resource, namespace, marked)

    def ensure(self, resource_id: str, namespace: str, item: Object) -> Object:
        """Create an object, or bring the one that is there to the same spec; its status stays."""
        resource, name = self.resource(resource_id), item["metadata"]["name"]
        there = self._storage.get(resource.id, namespace, name)
        if there is None:
            return self.create(resource, namespace, item)
        return self.patch(resource, namespace, name, {key: value for key, value in item.items() if key != "status"})

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
        if meta.get("name", name) != name:
            raise _misnamed(meta["name"], name)
        item = status_apart(resource, old, item, subresource)
        meta = item["metadata"]
        if wrong := metadata.update_faults(meta, before):
            raise errors.invalid(resource.group, resource.kind, name, wrong)
        if "managedFields" in before:
            meta.setdefault("managedFields", before["managedFields"])
        for field in (*metadata.SERVER_FIELDS, "resourceVersion", "name", "generateName"):
            meta.pop(field, None)
            if field in before:
                meta[field] = before[field]
        item = self._admitted(resource, item, old, strict=strict)
        if specified(item) != specified(old) and "generation" in before:
            item["metadata"]["generation"] = before["generation"] + 1
        if item == old or dry_run:
            return old if item == old else item
        freed = before.get("finalizers") and not item["metadata"].get("finalizers")
        if freed and "deletionTimestamp" in before and not before.get("deletionGracePeriodSeconds"):
            self._put(resource, namespace, item)
            return self._remove(resource, namespace, name)
        return self._put(resource, namespace, item)

    def _envelope(self, resource: Resource, namespace: str, item: Object) -> Object:
        """A copy of ``item`` whose apiVersion, kind and metadata are checked and filled in."""
        item = {**copy.deepcopy(item)}
        kind, version = item.setdefault("kind", resource.kind), item.setdefault("apiVersion", resource.api_version)
        if version != resource.api_version:
            expected = f"the expected API version ({resource.api_version})"
            raise errors.bad_request(f"the API version in the data ({version}) does not match {expected}")
        meta, self.warnings = metadata.read(item)
        if kind != resource.kind:
            cause = Cause("FieldValueInvalid", f'Invalid value: "{kind}": must be {resource.kind}', "kind")
            raise errors.invalid(resource.group, kind, meta.get("name", ""), [cause])
        if not resource.namespaced:
            meta.pop("namespace", None)
        elif meta.setdefault("namespace", namespace) != namespace:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        return item

    def _admitted(self, resource: Resource, item: Object, old: Object | None, *, strict: str | None) -> Object:
        """What will be stored: pruned, with defaults, and found valid."""
        name, schema = item["metadata"].get("name", ""), resource.schema
        if schema is not None:
            item, dropped = schemas.shaped(schema, item)
            self.warnings = sorted([*self.warnings, *dropped])
        if self.warnings and strict:
            said = "strict decoding error: " + ", ".join(f'unknown field "{path}"' for path in self.warnings)
            if strict == "Invalid":
                causes = [Cause("FieldValueInvalid", f"Invalid value: {said}", "patch")]
                raise errors.invalid("", "", "", causes)
            raise errors.bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {said}'
            )
        wrong = metadata.faults(resource, item["metadata"])
        if schema is not None:
            wrong += schemas.causes(schema, item, old)
            if any(cause.reason in schemas.STOPPING for cause in wrong):
                wrong.append(schemas.UNCHECKED)
            else:
                wrong += rules.broken(schema, item, old)
        if wrong:
            raise errors.invalid(resource.group, resource.kind, name, wrong)
        admit(resource, item, old, self._storage.get)
        if resource.id == CRDS:
            for kind in of_definition(item):
                rules.check(kind.schema or {})
        # Go escapes these in JSON, which is how etcd holds a custom object.
        text = json.dumps(item, ensure_ascii=False)
        if len(text.encode()) + 5 * sum(text.count(sign) for sign in "<>&") > OBJECT_LIMIT:
            raise ApiError(500, "", "etcdserver: request is too large")
        return item

    def _declared(self, resource: Resource, namespace: str, name: str, config: Object) -> None:
        """An applied configuration may hold only what the schema declares: what is unknown could not be owned."""
        if resource.schema is not None and (unknown := schemas.shaped(resource.schema, config)[1]):
            what = f"{namespace}/{name}; {resource.api_version}, Kind={resource.kind}"
            said = f"failed to create typed patch object ({what}): .{unknown[0]}: field not declared in schema"
            raise ApiError(500, "", said)

    def _put(self, resource: Resource, namespace: str, item: Object) -> Object:
        stored = self._storage.put(resource.id, namespace, item["metadata"]["name"], item)
        if resource.id == CRDS:
            self._register(stored)
            if not (stored.get("status") or {}).get("conditions"):
                stored = self._storage.put(CRDS, "", stored["metadata"]["name"], established(stored, self.now()))
        if resource.id == "namespaces" and "deletionTimestamp" not in stored["metadata"]:
            account, name = self.resource("serviceaccounts"), stored["metadata"]["name"]
            if self._storage.get(account.id, name, "default") is None:
                self.create(account, name, {"metadata": {"name": "default"}})
        return stored

    def _end_namespace(self, item: Object) -> Object:
        """Empty a namespace; it goes with the last thing in it."""
        name = item["metadata"]["name"]
        if "deletionTimestamp" not in item["metadata"]:
            item = copy.deepcopy(item)
            item["metadata"]["deletionTimestamp"] = self.now()
            item["status"] = {**item.get("status", {}), "phase": "Terminating"}
            item = self._storage.put("namespaces", "", name, item)
        for kind in self.resources():
            for inside in self._storage.of(kind.id, name) if kind.namespaced else ():
                if self._storage.get(kind.id, name, inside["metadata"]["name"]) is not None:
                    self.delete(kind, name, inside["metadata"]["name"], propagation="Background")
        self._leave(name)
        return item

    def _leave(self, namespace: str) -> None:
        place = self._storage.get("namespaces", "", namespace)
        if place is None or "deletionTimestamp" not in place["metadata"]:
            return
        if not any(self._storage.of(kind.id, namespace) for kind in self.resources() if kind.namespaced):
            self._storage.remove("namespaces", "", namespace)

    def _remove(self, resource: Resource, namespace: str, name: str) -> Object:
        if resource.id == CRDS:
            for kind in of_definition(self.get(resource, namespace, name)):
                for item in self._storage.of(kind.id):
                    meta = item["metadata"]
                    self.delete(kind, meta.get("namespace", ""), meta["name"], propagation="Background")
                self._resources.pop(kind.id, None)
        last = self._storage.remove(resource.id, namespace, name)
        if last is None:
            raise errors.not_found(resource.group, resource.plural, name)
        self._leave(namespace)
        return last

    def _register(self, crd: Object) -> None:
        for resource in of_definition(crd):
            self._resources[resource.id] = resource

    def _orphan(self, uid: str) -> None:
        for resource, item in self.dependents(uid):
            freed = copy.deepcopy(item)
            owners = [owner for owner in freed["metadata"]["ownerReferences"] if owner.get("uid") != uid]
            freed["metadata"]["ownerReferences"] = owners
            if not owners:
                del freed["metadata"]["ownerReferences"]
            self._put(resource, item["metadata"].get("namespace", ""), freed)

    def now(self) -> str:
        """The present time as Kubernetes writes it: whole seconds, UTC."""
        return _stamp(self.clock())


def _misnamed(given: str, name: str) -> ApiError:
    return errors.bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


async def _within(events: AsyncIterator[Event], namespace: str) -> AsyncIterator[Event]:
    async for event in events:
        if event.object["metadata"].get("namespace") == namespace:
            yield event
