"""The revision of the schemas goes up with them."""

import copy
from typing import Any

import pytest

from mcptasks_crds import manifest, revision

CRDS: list[dict[str, Any]] = list(manifest.manifests().values())


def test_a_changed_schema_has_a_new_revision() -> None:
    assert revision.digest(CRDS) == revision.DIGEST, (
        f"the CRDs have changed: raise REVISION in mcptasks_crds/revision.py, set DIGEST = {revision.digest(CRDS)!r}, "
        "and run `make crds`"
    )


def test_every_crd_says_its_revision() -> None:
    assert [revision.revision_of(crd) for crd in CRDS] == [revision.REVISION] * 3


def test_what_the_api_server_does_counts_and_texts_for_people_do_not() -> None:
    changed = copy.deepcopy(CRDS)
    version = changed[0]["spec"]["versions"][0]
    version["schema"]["openAPIV3Schema"]["description"] = "other words"
    assert revision.digest(reversed(changed)) == revision.DIGEST
    version["schema"]["openAPIV3Schema"]["properties"]["spec"].setdefault("required", []).append("x")
    assert revision.digest(changed) != revision.DIGEST


def test_a_field_named_description_is_a_field() -> None:
    crd: dict[str, Any] = {"metadata": {"name": "x"}, "spec": {"properties": {"description": {"type": "string"}}}}
    other = copy.deepcopy(crd)
    other["spec"]["properties"]["description"]["type"] = "integer"
    assert revision.digest([crd]) != revision.digest([other])


@pytest.mark.parametrize(
    ("annotations", "found"), [(None, 1), ({}, 1), ({revision.ANNOTATION: "7"}, 7), ({revision.ANNOTATION: "x"}, 1)]
)
def test_a_crd_without_a_number_is_the_first(annotations: dict[str, str] | None, found: int) -> None:
    assert revision.revision_of({"metadata": {"annotations": annotations}}) == found
