"""The tools on offer, from the MCPTool objects of the namespace."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from jsonschema import Draft202012Validator

from mcptasks_crds import arguments as call_arguments
from mcptasks_crds.errors import InvalidValue
from mcptasks_crds.record import later_version
from mcptasks_crds.tool import MCPTool
from mcptasks_service.errors import ArgumentsInvalid, ToolNotFound
from mcptasks_service.informer import Informer


@dataclass(frozen=True)
class OfferedTool:
    """One state of one MCPTool."""

    tool: MCPTool

    @property
    def key(self) -> tuple[str, str]:
        return self.tool.metadata.namespace or "", self.tool.metadata.name

    @property
    def uid(self) -> str:
        return self.tool.metadata.uid or ""

    @property
    def resource_version(self) -> str:
        return self.tool.metadata.resource_version or ""

    def newer_than(self, other: Self) -> bool:
        return later_version(self.resource_version, other.resource_version)

    @cached_property
    def validator(self) -> Draft202012Validator | None:
        """Of the arguments; None if the schema itself is unsound, which the tool's Ready condition says."""
        return call_arguments.validator(self.tool.spec.input_schema)

    def check(self, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that do not fit the input schema.

        Raises:
            ArgumentsInvalid: where and why, with the value.
        """
        try:
            call_arguments.check(self.tool.metadata.name, self.validator, arguments)
        except InvalidValue as error:
            raise ArgumentsInvalid(str(error)) from error


def read_tool(item: Mapping[str, Any]) -> OfferedTool:
    """An MCPTool as the informer keeps it.

    Raises:
        InvalidValue: it is not one that the CRD would have let in.
    """
    try:
        return OfferedTool(MCPTool.model_validate(item))
    except ValueError as error:
        raise InvalidValue(str(error)) from error


class Catalogue:
    """The tools of one namespace."""

    def __init__(self, informer: Informer[OfferedTool], namespace: str) -> None:
        self._informer, self._namespace = informer, namespace

    def tools(self) -> list[MCPTool]:
        """All of them, by name. A tool that is not Ready is offered too: its calls fail with the reason."""
        return sorted((offered.tool for offered in self._informer), key=lambda tool: tool.metadata.name)

    def offered(self, name: str) -> OfferedTool:
        """One of them, with its validator.

        Raises:
            ToolNotFound
        """
        if (offered := self._informer.get(self._namespace, name)) is None:
            raise ToolNotFound(name)
        return offered

    def tool(self, name: str) -> MCPTool:
        """One of them.

        Raises:
            ToolNotFound
        """
        return self.offered(name).tool

    async def changes(self) -> AsyncIterator[None]:
        """One item after each change that a client can see; several at once count as one."""
        wake = asyncio.Event()
        specs = {tool.metadata.name: tool.spec for tool in self.tools()}

        def changed(key: tuple[str, str], offered: OfferedTool | None) -> None:
            before = specs.pop(key[1], None)
            if offered is not None:
                specs[key[1]] = offered.tool.spec
            if before != specs.get(key[1]):  # the operator's status updates are no news
                wake.set()

        with self._informer.listen(None, changed):
            while True:
                await wake.wait()
                wake.clear()
                yield None
