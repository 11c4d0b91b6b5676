"""The program: how it ends, and with which exit code."""

import asyncio
import os
import signal
from typing import Any

import pytest
from kubernetes.aio.config import ConfigException

from mcptasks_operator import __main__ as program
from mcptasks_operator.feed import WatchEnded
from mcptasks_operator.lease import LeaseLost


def ending(monkeypatch: pytest.MonkeyPatch, fault: BaseException | None) -> None:
    async def run(_settings: Any, _stop: asyncio.Event) -> None:
        if fault is not None:
            raise fault

    monkeypatch.setattr(program, "run", run)


@pytest.mark.parametrize(
    "fault", [LeaseLost("taken over"), WatchEnded("over"), ConfigException("no kubeconfig"), OSError("port taken")]
)
def test_it_ends_with_1_to_be_started_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    ending(monkeypatch, fault)
    assert program.main() == 1
    assert str(fault) in caplog.text


def test_it_ends_with_0_when_its_work_does(monkeypatch: pytest.MonkeyPatch) -> None:
    ending(monkeypatch, None)
    assert program.main() == 0


def test_a_setting_that_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("MCPTASKS_WORKERS", "none")
    assert program.main() == 2
    assert "workers" in caplog.text


def test_sigterm_is_an_orderly_end(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run(_settings: Any, stop: asyncio.Event) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(stop.wait(), 10)

    monkeypatch.setattr(program, "run", run)
    assert program.main() == 0
