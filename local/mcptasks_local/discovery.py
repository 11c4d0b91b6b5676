"""What the API server says of itself: version, groups, resources, OpenAPI v3."""

import json
import zlib
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from mcptasks_local.errors import Object
from mcptasks_local.resources import Resource

VERSION = {
    "major": "1",
    "minor": "36",
    "gitVersion": "v1.36.0+mcptasks",
    "gitCommit": "",
    "gitTreeState": "clean",
    "buildDate": "1970-01-01T00:00:00Z",
    "goVersion": "",
    "compiler": "",
    "platform": "",
}


class Document(NamedTuple):
    """An answer and its media type."""

    body: Object
    media_type: str = "application/json"


def document(resources: Sequence[Resource], path: str, accept: str) -> Document | None:
    """What lies at a discovery path; None if it is not one, or of nothing that is served."""
    aggregated = "as=APIGroupDiscoveryList" in accept
    match path.strip("/").split("/"):
        case ["api"]:
            core = {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
            return _aggregated(resources, core=True) if aggregated else Document(core)
        case ["apis"]:
            if aggregated:
                return _aggregated(resources, core=False)
            return Document({"kind": "APIGroupList", "apiVersion": "v1", "groups": _groups(resources)})
        case ["apis", name]:
            found = [group for group in _groups(resources) if group["name"] == name]
            return Document({"kind": "APIGroup", "apiVersion": "v1", **found[0]}) if found else None
        case ["api", version]:
            return _resource_list(resources, "", version)
        case ["apis", group, version]:
            return _resource_list(resources, group, version)
        case ["openapi", "v3"]:
            return Document(_openapi_index(resources))
        case ["openapi", "v3", "api", version]:
            return _openapi(resources, "", version)
        case ["openapi", "v3", "apis", group, version]:
            return _openapi(resources, group, version)
    return None


def _versions(resources: Iterable[Resource]) -> dict[str, dict[str, list[Resource]]]:
    found: dict[str, dict[str, list[Resource]]] = {}
    for resource in resources:
        found.setdefault(resource.group, {}).setdefault(resource.version, []).append(resource)
    return found


def _groups(resources: Iterable[Resource]) -> list[Object]:
    groups: list[Object] = []
    for name, versions in _versions(resources).items():
        if name:
            entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
            groups.append({"name": name, "versions": entries, "preferredVersion": entries[0]})
    return groups


def _resource_list(resources: Iterable[Resource], group: str, version: str) -> Document | None:
    entries: list[Object] = []
    for r in _versions(resources).get(group, {}).get(version, ()):
        head = {"namespaced": r.namespaced, "kind": r.kind}
        entry: Object = {"name": r.plural, "singularName": r.singular, **head, "verbs": list(r.verbs)}
        for field, words in (("shortNames", r.short_names), ("categories", r.categories)):
            if words:
                entry[field] = list(words)
        entries.append(entry)
        for name, (verbs, other) in _subresources(r).items():
            entries.append({"name": f"{r.plural}/{name}", "singularName": "", **head, **other, "verbs": list(verbs)})
    if not entries:
        return None
    group_version = f"{group}/{version}" if group else version
    return Document(
        {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}
    )


def _subresources(r: Resource) -> dict[str, tuple[tuple[str, ...], Object]]:
    """Their verbs, and their kind where it is another one."""
    request = {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}
    known: dict[str, tuple[tuple[str, ...], Object]] = {
        "status": (("get", "patch", "update"), {}),
        "log": (("get",), {}),
        "token": (("create",), request),
    }
    return {name: known[name] for name in r.subresources}


def _aggregated(resources: Iterable[Resource], *, core: bool) -> Document:
    """All of it in one answer, as kubectl asks for it first."""
    items: list[Object] = []
    for group, versions in _versions(resources).items():
        if bool(group) == core:
            continue
        entries = [
            {"version": version, "resources": [_discovered(r) for r in found], "freshness": "Current"}
            for version, found in versions.items()
        ]
        items.append({"metadata": {"name": group} if group else {}, "versions": entries})
    body = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}
    return Document(body, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")


def _discovered(r: Resource) -> Object:
    kind = {"group": r.group, "version": r.version, "kind": r.kind}
    entry: Object = {
        "resource": r.plural,
        "responseKind": kind,
        "scope": "Namespaced" if r.namespaced else "Cluster",
        "singularResource": r.singular,
        "verbs": list(r.verbs),
    }
    for field, words in (("shortNames", r.short_names), ("categories", r.categories)):
        if words:
            entry[field] = list(words)
    if below := _subresources(r):
        entry["subresources"] = [
            {"subresource": name, "responseKind": {**kind, **other}, "verbs": list(verbs)}
            for name, (verbs, other) in below.items()
        ]
    return entry


def _openapi_index(resources: Iterable[Resource]) -> Object:
    """Where each group's document lies; the hash lets kubectl cache it."""
    paths: Object = {}
    for group, versions in _versions(resources).items():
        for version, found in versions.items():
            path = f"apis/{group}/{version}" if group else f"api/{version}"
            digest = zlib.crc32(json.dumps([[r.kind, r.schema] for r in found], sort_keys=True).encode())
            paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest:08X}"}
    return {"paths": paths}


def _openapi(resources: Iterable[Resource], group: str, version: str) -> Document | None:
    """One group's document: schemas, and a ``patch`` operation with ``fieldValidation``, which kubectl looks for."""
    found = _versions(resources).get(group, {}).get(version)
    if not found:
        return None
    schemas: Object = {}
    paths: Object = {}
    for r in found:
        name = ".".join([*reversed((group or "core.api.k8s.io").split(".")), version, r.kind])
        gvk = {"group": group, "version": version, "kind": r.kind}
        schemas[name] = {**_schema(r), "x-kubernetes-group-version-kind": [gvk]}
        root = f"/apis/{group}/{version}" if group else f"/api/{version}"
        collection = f"{root}/namespaces/{{namespace}}/{r.plural}" if r.namespaced else f"{root}/{r.plural}"
        reference = {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}}
        paths[f"{collection}/{{name}}"] = {
            verb: {**_operation(verb, gvk), "responses": {"200": {"description": "OK", **reference}}}
            for verb in ("get", "put", "patch", "delete")
        }
        paths[collection] = {
            "post": {**_operation("post", gvk), "responses": {"201": {"description": "Created", **reference}}},
            "get": {**_operation("list", gvk), "responses": {"200": {"description": "OK"}}},
        }
    return Document(
        {
            "openapi": "3.0.0",
            "info": {"title": "mcptasks embedded control plane", "version": VERSION["gitVersion"]},
            "paths": paths,
            "components": {"schemas": schemas},
        }
    )


def _schema(r: Resource) -> Object:
    """The schema of a custom kind; of built-in ones, whose schemas are not here, the outline."""
    if r.schema:
        return r.schema
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    text = {"type": "string"}
    described = f"{r.kind} of {r.api_version}; the embedded control plane does not carry its schema."
    properties = {"apiVersion": text, "kind": text, "metadata": free, "spec": free, "status": free}
    return {**free, "description": described, "properties": properties}


def _operation(verb: str, gvk: Object) -> dict[str, Any]:
    return {
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": gvk,
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            for name in ("dryRun", "fieldManager", "fieldValidation")
        ],
    }
