"""The stateless era, 2026-07-28: every request carries its version and capabilities, and headers that repeat them."""

from collections.abc import Mapping
from typing import Any

from mcp.server.connection import Connection
from mcp.shared.inbound import (
    MCP_PROTOCOL_VERSION_HEADER,
    X_MCP_HEADER_KEY,
    InboundLadderRejection,
    classify_inbound_request,
    find_duplicated_routing_header,
    unsupported_protocol_version_rejection,
    validate_mcp_param_headers,
)
from mcp_types import HEADER_MISMATCH, INVALID_REQUEST, ErrorData, JSONRPCRequest
from starlette.types import Receive, Send

from mcptasks_service import guard
from mcptasks_service.answers import Answers, read_request
from mcptasks_service.callers import anonymous
from mcptasks_service.catalogue import Catalogue
from mcptasks_service.errors import ToolNotFound
from mcptasks_service.exchange import Exchange
from mcptasks_service.replies import Refused, send_empty
from mcptasks_service.wire_errors import http_status

Lines = list[tuple[str, str]]


class Stateless:
    """POST of this era."""

    def __init__(self, catalogue: Catalogue, answers: Answers) -> None:
        self._catalogue, self._answers = catalogue, answers

    async def post(
        self,
        headers: Mapping[str, str],
        lines: Lines,
        message: dict[str, Any],
        receive: Receive,
        send: Send,
    ) -> None:
        """Answer one message; ``lines`` are the headers as they came, name and value.

        Raises:
            Refused
        """
        if "id" not in message and isinstance(message.get("method"), str):
            # No client has a notification to send here: it is taken, and nothing follows.
            if (rejection := unsupported_protocol_version_rejection(headers[MCP_PROTOCOL_VERSION_HEADER])) is not None:
                raise _rejected(rejection, None)
            await send_empty(send, 202)
            return
        request = read_request(message)
        if (twice := find_duplicated_routing_header(lines)) is not None:
            raise Refused(400, HEADER_MISMATCH, f"{twice} header appears more than once", request_id=request.id)
        route = classify_inbound_request(message, headers=headers)
        if isinstance(route, InboundLadderRejection):
            raise _rejected(route, request.id)
        if (rejection := self._contradicted(lines, request)) is not None:
            raise _rejected(rejection, request.id)
        if request.method == "subscriptions/listen" and not guard.accepts(headers)[1]:
            why = "Not Acceptable: a subscription is a text/event-stream"
            raise Refused(406, INVALID_REQUEST, why, request_id=request.id)
        connection = Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
        exchange = Exchange(
            headers=headers, modern=True, caller=anonymous(None), request_id=request.id, params=request.params
        )
        await self._answers.send(exchange, connection, request, receive, send)

    def _contradicted(self, lines: Lines, request: JSONRPCRequest) -> InboundLadderRejection | None:
        """Whether ``Mcp-Param-*`` headers contradict the arguments that the tool's schema says they mirror."""
        params = request.params or {}
        name, arguments = params.get("name"), params.get("arguments") or {}
        if request.method != "tools/call" or not isinstance(name, str) or not isinstance(arguments, Mapping):
            return None
        try:
            input_schema = self._catalogue.tool(name).spec.input_schema
        except ToolNotFound:
            return None
        if X_MCP_HEADER_KEY not in repr(input_schema):  # walking a schema takes longer than the rest of a call
            return None
        return validate_mcp_param_headers(input_schema, arguments, _Headers(lines))


class _Headers(dict[str, str]):
    """Headers whose ``items`` are the lines as they came: a mapping alone would hide that one stands twice."""

    def __init__(self, lines: Lines) -> None:
        super().__init__(lines)
        self._lines = lines

    def items(self) -> Any:
        return self._lines


def _rejected(rejection: InboundLadderRejection, request_id: str | int | None) -> Refused:
    error = ErrorData(code=rejection.code, message=rejection.message, data=rejection.data)
    status = http_status(error, modern=True)
    return Refused(status, rejection.code, rejection.message, rejection.data, request_id=request_id)
