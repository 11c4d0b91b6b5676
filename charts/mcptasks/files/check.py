"""What `helm test` runs: an MCP client opens a session and lists the tools. Its arguments: host and port."""

import json
import sys
import time
from http.client import HTTPConnection
from typing import Any

HOST, PORT = sys.argv[1], int(sys.argv[2])
VERSION = "2025-06-18"
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
PATIENCE_SECONDS = 60
"""How long the service may take to come up after an install that did not wait."""


def post(message: dict[str, Any], headers: dict[str, str]) -> tuple[dict[str, Any], str | None]:
    """One JSON-RPC message on a connection of its own, which any replica may get: the answer, and the session's id.

    Raises:
        OSError: nobody answers.
        SystemExit: the answer is no success.
    """
    connection = HTTPConnection(HOST, PORT, timeout=20)
    connection.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}), {**HEADERS, **headers})
    response = connection.getresponse()
    text = response.read().decode()
    connection.close()
    if response.status == 202:
        return {}, None
    if response.headers.get_content_type() == "text/event-stream":
        text = next(line[5:] for line in text.splitlines() if line.startswith("data:") and '"jsonrpc"' in line)
    answer = json.loads(text) if response.status == 200 else {}
    if "result" not in answer:
        sys.exit(f"{message['method']}: the service answered {response.status} {text}")
    return answer["result"], response.headers.get("Mcp-Session-Id")


def opened() -> tuple[dict[str, Any], str | None]:
    """The answer to initialize, as soon as there is one."""
    client = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "helm-test", "version": "1"}}
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return post({"id": 1, "method": "initialize", "params": client}, {})
        except OSError as error:
            if time.monotonic() > end:
                sys.exit(f"nobody answers at {HOST}:{PORT}: {error}")
            time.sleep(1)


info, session = opened()
headers = {"MCP-Protocol-Version": VERSION} | ({"Mcp-Session-Id": session} if session else {})
post({"method": "notifications/initialized"}, headers)
# A session is good on every replica: with two of them, one that did not open it answers some of these.
tools: list[Any] = []
for number in range(2, 8):
    tools = post({"id": number, "method": "tools/list", "params": {}}, headers)[0]["tools"]
sys.stdout.write(f"{info['serverInfo']} answers at {HOST}:{PORT} and has {len(tools)} tools\n")
