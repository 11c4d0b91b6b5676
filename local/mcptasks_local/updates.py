"""What one write may change of an object, and what counts as a change. Pure."""

import copy

from mcptasks_local.errors import Object
from mcptasks_local.resources import Resource


def status_apart(resource: Resource, old: Object, item: Object, subresource: str | None) -> Object:
    """A write to the object leaves the status as it was; a write to the status leaves all else."""
    if not resource.status:
        return item
    if subresource == "status":
        out = copy.deepcopy(old)
        out["metadata"]["resourceVersion"] = item["metadata"].get("resourceVersion")
        if not resource.custom:  # built-in kinds take these from a write to the status too
            for field in ("labels", "annotations", "finalizers"):
                out["metadata"].pop(field, None)
                if field in item["metadata"]:
                    out["metadata"][field] = item["metadata"][field]
        source = item
    else:
        out, source = item, old
    out.pop("status", None)
    if "status" in source:
        out["status"] = source["status"]
    return out


def unstamped(item: Object) -> Object:
    """Without the times of its field owners: applying the same again is no change."""
    fields = [{**entry, "time": None} for entry in item["metadata"].get("managedFields") or ()]
    return {**item, "metadata": {**item["metadata"], "managedFields": fields}}


def specified(item: Object) -> Object:
    """What ``metadata.generation`` counts the changes of."""
    return {key: value for key, value in item.items() if key not in ("metadata", "status")}
