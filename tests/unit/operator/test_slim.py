"""What is kept of a task that has ended."""

import pytest

from mcptasks_crds.retention import expires_at
from mcptasks_operator.slim import slim

from .cluster import START
from .objects import condition, ended, task, working

KEEP = {"after": "Finish", "milliseconds": 60_000}


@pytest.mark.fault("O8")
def test_an_ended_task_keeps_what_its_expiry_needs() -> None:
    fat = task(status=ended(expires=START + 70, conditions=[condition("Finished", "Succeeded")]), retention=KEEP)
    thin = slim(fat)
    assert thin.conditions == ()
    assert thin.result is None
    assert (thin.key, thin.uid, thin.resource_version) == (fat.key, fat.uid, fat.resource_version)
    assert (thin.state, thin.expires, thin.tool, thin.owner_key) == (fat.state, fat.expires, fat.tool, fat.owner_key)
    assert thin.finished is not None
    assert expires_at(thin.retention, thin.created, thin.finished) == fat.expires


def test_tasks_share_one_retention() -> None:
    one, two = (slim(task(n, status=ended(), retention=KEEP)) for n in (1, 2))
    assert one.retention is two.retention is not None
    assert slim(task(status=ended())).retention is None


def test_an_open_task_stays_whole() -> None:
    whole = task(status=working(conditions=[condition("Started", "JobCreated")]))
    assert slim(whole) is whole
