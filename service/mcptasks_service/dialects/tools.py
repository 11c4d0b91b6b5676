"""``tools/list``: the catalogue in MCP's words."""

from collections.abc import Iterable
from typing import Any

from mcptasks_crds.tool import MCPTool


def listed(tools: Iterable[MCPTool], *, task_support: bool) -> list[dict[str, Any]]:
    """The tools as ``tools/list`` shows them; ``execution.taskSupport`` is a word of 2025-11-25 alone."""
    return [_words(tool, task_support=task_support) for tool in tools]


def _words(tool: MCPTool, *, task_support: bool) -> dict[str, Any]:
    spec = tool.spec
    optional = {
        "title": spec.title,
        "description": spec.description or None,
        "outputSchema": spec.output_schema,
        "annotations": spec.annotations,
        "execution": {"taskSupport": spec.task_support} if task_support else None,
    }
    return {
        "name": tool.metadata.name,
        "inputSchema": {"type": "object", **spec.input_schema},
        **{key: value for key, value in optional.items() if value is not None},
    }
