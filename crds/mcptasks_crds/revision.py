"""The revision of the CRDs' schemas, which an operator compares with what it needs before it acts.

Raise `REVISION` with every change of a schema, a rule, a column or a selectable field, and record the new `DIGEST`: a
test says so when they differ. Texts for people do not count.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

ANNOTATION = "mcptasks.dev/schema"

REVISION = 2
"""1 had no annotation. 2: tasks made by hand; a status from the start."""

DIGEST = "fba3f01aaf3cb0d2c3a1e169887ef7eb239a967db48c23e93636976cb79439fb"
"""`digest` of the CRDs that `REVISION` stands for."""

FIRST = 1
"""The revision of CRDs without the annotation."""


def digest(crds: Iterable[Mapping[str, Any]]) -> str:
    """A hash of what the API server does by these CRDs, whatever their order and their descriptions."""
    specs = {crd["metadata"]["name"]: _bare(crd["spec"]) for crd in crds}
    return hashlib.sha256(json.dumps(specs, sort_keys=True).encode()).hexdigest()


def revision_of(crd: Mapping[str, Any]) -> int:
    """The revision that an installed CRD says it has."""
    text = (crd["metadata"].get("annotations") or {}).get(ANNOTATION, "")
    return int(text) if text.isdecimal() else FIRST


def _bare(node: Any) -> Any:
    match node:
        case dict():
            return {k: _bare(v) for k, v in node.items() if not (k == "description" and isinstance(v, str))}
        case list():
            return [_bare(item) for item in node]
        case _:
            return node
