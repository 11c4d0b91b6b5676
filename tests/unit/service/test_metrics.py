"""The metrics."""

import pytest

from mcptasks_service.metrics import Metrics

BOUNDED = {"tool", "origin", "outcome", "method", "era", "code", "limit", "per", "reason", "kind"}


@pytest.mark.fault("O10")
def test_no_label_holds_a_task_an_owner_or_a_session() -> None:
    collectors = [c for c in vars(Metrics()).values() if hasattr(c, "_labelnames")]
    assert len(collectors) > 10
    for collector in collectors:
        assert set(collector._labelnames) <= BOUNDED
        assert collector._documentation


def test_two_services_in_one_process_count_apart() -> None:
    one, other = Metrics(), Metrics()
    one.refusals.labels(limit="polls").inc()
    assert b'mcptasks_service_refusals_total{limit="polls"} 1.0' in one.render()
    assert b'refusals_total{limit="polls"}' not in other.render()
    assert b"process_resident_memory_bytes" in one.render()


def test_a_watch_shows_its_size_its_age_and_whether_it_is_open() -> None:
    metrics = Metrics()
    metrics.informer("tasks", lambda: 7, age=lambda: 3.0, connected=lambda: True)
    value = metrics.registry.get_sample_value
    assert value("mcptasks_service_informer_objects", {"kind": "tasks"}) == 7
    assert value("mcptasks_service_watch_age_seconds", {"kind": "tasks"}) == 3
    assert value("mcptasks_service_watch_connected", {"kind": "tasks"}) == 1
