import re

import pytest

from mcptasks_local.dev.feed import Line
from mcptasks_local.dev.screen import Screen


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [re.sub(r"^\d\d:\d\d:\d\d  ", "", line) for line in capsys.readouterr().out.splitlines()]


def test_a_change_is_one_plain_line_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().line(Line("build", "t-01234567", "working", "[3/10] " + "compiling " * 20, "cyan"))
    [line] = printed(capsys)
    assert line.startswith("build          t-01234567  working     [3/10] compiling compiling")
    assert "\x1b" not in line


def test_quiet_leaves_changes_out_but_not_events(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen(quiet=True)
    screen.line(Line("build", "", "tool ready"))
    screen.event("the service was killed by SIGKILL")
    assert printed(capsys) == ["the service was killed by SIGKILL"]


def test_of_a_child_s_log_only_what_a_person_must_see_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    screen = Screen()
    for line in (
        "2026-01-01 12:00:00,123 INFO errors: ERROR none",
        "2026-01-01 12:00:00,123 WARNING slow",
        "12:00:00 I Engine started",
        "12:00:00 E disk full",
        "ValueError: not in a traceback",
        "Traceback (most recent call last):",
        '  File "x.py", line 1',
        "KeyError: 'uid'",
        "KeyError: later",
    ):
        screen.child("operator", line)
    assert printed(capsys) == [
        "operator 2026-01-01 12:00:00,123 WARNING slow",
        "operator 12:00:00 E disk full",
        "operator KeyError: 'uid'",
    ]


def test_verbose_shows_all_of_it(capsys: pytest.CaptureFixture[str]) -> None:
    Screen(verbose=True).child("service", "INFO started [worker]")
    assert printed(capsys) == ["service INFO started [worker]"]


def test_errors_go_to_standard_error_each_line_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    Screen().fail("a.yaml: [bad]\nb.yaml: worse")
    assert capsys.readouterr().err == "mcptasks dev: a.yaml: [bad]\nmcptasks dev: b.yaml: worse\n"
