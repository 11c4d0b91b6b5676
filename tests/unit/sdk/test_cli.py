import builtins
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from types import ModuleType

import pytest
from typer.testing import CliRunner

from mcptasks import cli
from mcptasks.cli.app import app
from mcptasks_local.dev import run as run_module
from mcptasks_local.dev.options import Options


def test_version() -> None:
    assert CliRunner().invoke(app, ["version"]).output == f"mcptasks {metadata.version('mcptasks')}\n"


def test_dev_hands_its_options_on(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Options] = []

    def run(options: Options) -> int:
        seen.append(options)
        return 3

    monkeypatch.setattr(run_module, "run", run)
    line = "dev --port 0 --api-port 7 --tools a.yaml --tools b --state s --namespace n --max-pods 2 --reset -q -v"
    assert CliRunner().invoke(app, line.split()).exit_code == 3
    assert seen == [
        Options(
            port=0,
            api_port=7,
            tools=(Path("a.yaml"), Path("b")),
            state=Path("s"),
            namespace="n",
            max_pods=2,
            reset=True,
            quiet=True,
            verbose=True,
        )
    ]


def test_the_command_starts_without_what_only_a_dev_server_needs() -> None:
    heavy = "{'kubernetes', 'mcp', 'fastapi', 'kopf', 'starlette', 'mcptasks_local'}"
    code = f"import sys, mcptasks.cli.app; print(sorted({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_base_installation_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_typer(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        if name.startswith(("typer", "mcptasks.cli.app")):
            raise ModuleNotFoundError(f"No module named {name!r}", name="typer")
        return real(name, globals, locals, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", without_typer)
    with pytest.raises(SystemExit, match=r"typer is not installed; .* pip install 'mcptasks\[all\]'"):
        cli.main()
