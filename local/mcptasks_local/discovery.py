"""What the API server says of itself: version, groups, resources, OpenAPI v3."""

import json
from collections.abc import Iterable
from typing import Any

from mcptasks_local.errors import ApiError, Object
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


def core_versions() -> Object:
    """/api"""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def groups(resources: Iterable[Resource]) -> Object:
    """/apis"""
    versions: dict[str, list[str]] = {}
    for resource in resources:
        if resource.group and resource.version not in versions.setdefault(resource.group, []):
            versions[resource.group].append(resource.version)
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(g, v) for g, v in versions.items()]}


def group(resources: Iterable[Resource], name: str) -> Object:
    """/apis/GROUP

    Raises:
        ApiError: 404
    """
    for found in groups(resources)["groups"]:
        if found["name"] == name:
            return {"kind": "APIGroup", "apiVersion": "v1", **found}
    raise ApiError(404, "NotFound", "the server could not find the requested resource")


def _group(name: str, versions: list[str]) -> Object:
    entries = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": entries, "preferredVersion": entries[0]}


def resource_list(resources: Iterable[Resource], group: str, version: str) -> Object:
    """/api/v1 and /apis/GROUP/VERSION

    Raises:
        ApiError: 404
    """
    found = [r for r in resources if (r.group, r.version) == (group, version)]
    if not found:
        raise ApiError(404, "NotFound", "the server could not find the requested resource")
    entries: list[Object] = []
    for r in found:
        entry: Object = {
            "name": r.plural,
            "singularName": r.singular,
            "namespaced": r.namespaced,
            "kind": r.kind,
            "verbs": list(r.verbs),
        }
        if r.short_names:
            entry["shortNames"] = list(r.short_names)
        if r.categories:
            entry["categories"] = list(r.categories)
        entries.append(entry)
        base = {"singularName": "", "namespaced": r.namespaced, "kind": r.kind}
        if r.status:
            entries.append({"name": f"{r.plural}/status", **base, "verbs": ["get", "patch", "update"]})
        if r.id == "pods":
            entries.append({"name": "pods/log", **base, "verbs": ["get"]})
        if r.id == "serviceaccounts":
            entries.append(
                {
                    "name": "serviceaccounts/token",
                    "singularName": "",
                    "namespaced": True,
                    "group": "authentication.k8s.io",
                    "version": "v1",
                    "kind": "TokenRequest",
                    "verbs": ["create"],
                }
            )
    group_version = f"{group}/{version}" if group else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": entries}


def openapi_index(resources: Iterable[Resource]) -> Object:
    """/openapi/v3: where each group's document lies; the hash lets kubectl cache it."""
    paths: Object = {}
    for r in resources:
        path = f"apis/{r.group}/{r.version}" if r.group else f"api/{r.version}"
        digest = hash(json.dumps(r.schema, sort_keys=True)) & 0xFFFFFFFF
        previous = paths.get(path, {}).get("serverRelativeURL", "=0").rpartition("=")[2]
        paths[path] = {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest ^ int(previous):d}"}
    return {"paths": paths}


def openapi(resources: Iterable[Resource], group: str, version: str) -> Object:
    """One group's document: schemas, and a ``patch`` operation with ``fieldValidation``, which kubectl looks for."""
    schemas: Object = {}
    paths: Object = {}
    for r in resources:
        if (r.group, r.version) != (group, version):
            continue
        name = ".".join([*reversed(group.split(".") if group else ["io", "k8s", "api", "core"][::-1]), version, r.kind])
        gvk = {"group": group, "version": version, "kind": r.kind}
        schema: Object = (
            dict(r.schema) if r.schema else {"type": "object", "description": f"{r.kind} of {r.api_version}."}
        )
        schema["x-kubernetes-group-version-kind"] = [gvk]
        schemas[name] = schema
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
    return {
        "openapi": "3.0.0",
        "info": {"title": "mcptasks embedded control plane", "version": VERSION["gitVersion"]},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(verb: str, gvk: Object) -> dict[str, Any]:
    return {
        "x-kubernetes-action": verb,
        "x-kubernetes-group-version-kind": gvk,
        "parameters": [
            {"name": name, "in": "query", "schema": {"type": "string", "uniqueItems": True}}
            for name in ("dryRun", "fieldManager", "fieldValidation")
        ],
    }
