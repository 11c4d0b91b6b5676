"""Write the generated tables of operations.md, or with ``--check`` say that they are not what the code gives."""

import sys
from pathlib import Path

from prometheus_client import CollectorRegistry
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

from mcptasks_operator.metrics import Metrics as OperatorMetrics
from mcptasks_operator.settings import Settings as OperatorSettings
from mcptasks_operator.store import Store
from mcptasks_service.metrics import Metrics as ServiceMetrics
from mcptasks_service.settings import Settings as ServiceSettings

PAGE = Path(__file__).parent / "operations.md"


def settings(kind: type[BaseSettings]) -> str:
    """A row for each field: variable, default, description."""
    rows = ["| variable | default | |", "|---|---|---|"]
    for name, field in kind.model_fields.items():
        default = "" if field.default is PydanticUndefined or field.default in (None, [], "") else f"`{field.default}`"
        rows.append(f"| `MCPTASKS_{name.upper()}` | {default} | {' '.join((field.description or '').split())} |")
    return "\n".join(rows)


def metrics() -> str:
    """A row for each metric of both processes, with its labels."""
    operator = OperatorMetrics()
    operator.watch("task", lambda: 0.0)
    operator.store(Store(lambda _key: None, lambda _key: None), lambda: 0.0)
    rows = ["| metric | type | labels | |", "|---|---|---|---|"]
    for registry in (ServiceMetrics().registry, operator.registry):
        rows += [
            f"| `{name}` | {kind} | {labels} | {text} |" for name, (kind, labels, text) in sorted(_described(registry))
        ]
    return "\n".join(rows)


def _described(registry: CollectorRegistry) -> list[tuple[str, tuple[str, str, str]]]:
    out = []
    for collector in list(registry._collector_to_names):
        labels = ", ".join(f"`{label}`" for label in getattr(collector, "_labelnames", ()))
        for metric in collector.collect():
            if metric.name.startswith("mcptasks_"):
                name = f"{metric.name}_total" if metric.type == "counter" else metric.name
                own = labels or ", ".join(f"`{label}`" for label in getattr(metric, "_labelnames", ()))
                out.append((name, (metric.type, own, metric.documentation)))
    return out


def main(argv: list[str]) -> int:
    """Write the page, or check it."""
    text = PAGE.read_text()
    for name, table in (
        ("service settings", settings(ServiceSettings)),
        ("operator settings", settings(OperatorSettings)),
        ("metrics", metrics()),
    ):
        block = f"<!-- generated: {name} -->\n{table}\n<!-- end -->"
        before, _, rest = text.partition(f"<!-- generated: {name} -->")
        text = before + block + rest.partition("<!-- end -->")[2]
    if "--check" in argv:
        if text != PAGE.read_text():
            sys.stderr.write("docs/operations.md is not what the code gives; run `make docs`\n")
            return 1
        return 0
    PAGE.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
