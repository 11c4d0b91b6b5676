"""A custom kind for tests of the API, its objects, and a client of the application without a socket."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from mcptasks_local.access import Access
from mcptasks_local.app import App
from mcptasks_local.errors import Object
from mcptasks_local.identity import Identity
from mcptasks_local.logs import LogOptions
from mcptasks_local.objects import CRDS, Objects
from mcptasks_local.serving import certificate, serving, write_kubeconfig
from mcptasks_local.storage import Storage

ADMIN = "the-admin-token"
KEY = b"k" * 32
PATH = "/apis/example.dev/v1/namespaces/default/widgets"
STATE = "has({0}.status) && has({0}.status.state) ? {0}.status.state : 'new'"
DEFINITION: Object = yaml.safe_load(
    """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.dev}
spec:
  group: example.dev
  scope: Namespaced
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget, shortNames: [wd], categories: [toys]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    additionalPrinterColumns:
    - {name: State, type: string, jsonPath: .status.state}
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
    - {name: Owner, type: string, jsonPath: .spec.owner, priority: 1, description: whose}
    selectableFields: [{jsonPath: .status.state}, {jsonPath: .spec.owner}]
    schema:
      openAPIV3Schema:
        type: object
        description: A widget.
        required: [spec]
        properties:
          spec:
            type: object
            required: [owner]
            properties:
              owner: {type: string, maxLength: 8, minLength: 2, pattern: '^[a-z]+$', description: Who has it.}
              size: {type: integer, minimum: 1, maximum: 10, default: 3}
              ratio: {type: number, exclusiveMinimum: true, minimum: 0, multipleOf: 0.5}
              share: {type: number, exclusiveMaximum: true, maximum: 1}
              mode: {type: string, enum: [a, b]}
              at: {type: string, format: date-time}
              flag: {type: boolean}
              either: {x-kubernetes-int-or-string: true}
              maybe: {type: string, nullable: true}
              free: {type: object, x-kubernetes-preserve-unknown-fields: true}
              tags: {type: array, maxItems: 2, minItems: 1, items: {type: string}, x-kubernetes-list-type: set}
              parts:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [name]
                items:
                  type: object
                  required: [name]
                  properties: {name: {type: string}, n: {type: integer, default: 1}, note: {type: string}}
                  x-kubernetes-validations:
                  - {rule: "self.n >= oldSelf.n", message: n never shrinks}
              labels: {type: object, maxProperties: 2, minProperties: 1,
                       additionalProperties: {type: string, maxLength: 4}}
            x-kubernetes-validations:
            - {rule: "self.owner == oldSelf.owner", message: owner cannot be changed, fieldPath: .owner,
               reason: FieldValueForbidden}
            - {rule: "self.size < 9", message: too big}
            - {rule: "!has(self.ratio) || self.ratio < 100.0"}
          status:
            type: object
            properties:
              state: {type: string, enum: [new, busy, done], default: new}
              count: {type: integer, minimum: 0}
              conditions:
                type: array
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [type]
                items:
                  type: object
                  required: [type, status]
                  properties: {type: {type: string}, status: {type: string}, reason: {type: string}}
        x-kubernetes-validations:
        - rule: "(OLD) != 'done' || (NEW) == 'done'"
          reason: FieldValueForbidden
          messageExpression: "'a widget that is ' + oldSelf.status.state + ' cannot become ' + (NEW)"
""".replace("OLD", STATE.format("oldSelf")).replace("NEW", STATE.format("self"))
)
SCHEMA: Object = DEFINITION["spec"]["versions"][0]["schema"]["openAPIV3Schema"]


def widget(name: str = "a", spec: Any = None, **more: Any) -> Object:
    """A widget of Ann's."""
    spec = {"owner": "ann"} if spec is None else spec
    return {"apiVersion": "example.dev/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec, **more}


def job_spec(**more: Any) -> Object:
    """A Job's spec with one container."""
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}]}
    return {"template": {"spec": pod}, **more}


def new_objects(storage: Storage | None = None) -> Objects:
    """Objects with a namespace `default` and the kind Widget."""
    objects = Objects(storage or Storage(None))
    objects.create(objects.resource("namespaces"), "", {"metadata": {"name": "default"}})
    objects.create(objects.resource(CRDS), "", DEFINITION)
    return objects


async def log_of(pod: Object, options: LogOptions) -> AsyncIterator[bytes]:
    """A log that tells what was asked for."""
    yield f"{pod['metadata']['name']} tail={options.tail_lines} limit={options.limit_bytes}\n".encode()
    if options.follow:
        yield b"the end\n"


@dataclass
class Answer:
    """What came back; ``body`` is parsed if it is JSON."""

    status: int
    headers: list[tuple[bytes, bytes]]
    body: Any

    @property
    def warnings(self) -> list[str]:
        return [value.decode() for name, value in self.headers if name == b"warning"]


@dataclass
class Client:
    """Calls an application without a socket."""

    objects: Objects
    app: App
    token: str = ADMIN
    agent: str = "tests/1.0 (linux)"
    extra: dict[str, str] = field(default_factory=dict)

    async def call(
        self, method: str, url: str, body: Any = None, *, content_type: str = "application/json", accept: str = "*/*"
    ) -> Answer:
        """One request to its end."""
        parts = [part async for part in self.stream(method, url, body, content_type=content_type, accept=accept)]
        text = b"".join(part for part in parts[1:] if isinstance(part, bytes))
        head: Any = parts[0]
        try:
            parsed = json.loads(text)
        except ValueError:
            parsed = text.decode()
        return Answer(head["status"], head["headers"], parsed)

    async def stream(
        self, method: str, url: str, body: Any = None, *, content_type: str = "application/json", accept: str = "*/*"
    ) -> AsyncIterator[Any]:
        """The head of an answer, then its chunks; leaving early is a client that goes away."""
        path, _, query = url.partition("?")
        headers = [(b"accept", accept.encode()), (b"user-agent", self.agent.encode())]
        if self.token:
            headers.append((b"authorization", f"Bearer {self.token}".encode()))
        data = b""
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers.append((b"content-type", content_type.encode()))
        scope = {
            "type": "http", "http_version": "1.1", "asgi": {"version": "3.0", "spec_version": "2.4"}, "scheme": "https",
            "method": method, "path": path, "raw_path": path.encode(), "query_string": query.encode(),
            "headers": headers, "server": ("127.0.0.1", 1),
        }  # fmt: skip
        out: asyncio.Queue[Any] = asyncio.Queue()
        sent = [{"type": "http.request", "body": data, "more_body": False}]

        async def receive() -> Any:
            if not sent:
                await asyncio.Event().wait()
            return sent.pop()

        async def send(message: Any) -> None:
            await out.put(message)

        running = asyncio.create_task(self.app(scope, receive, send))
        try:
            while True:
                getting = asyncio.create_task(out.get())
                await asyncio.wait({getting, running}, return_when=asyncio.FIRST_COMPLETED)
                if not getting.done():
                    getting.cancel()
                    running.result()
                    return
                message = getting.result()
                if message["type"] == "http.response.start":
                    yield message
                    continue
                yield message["body"]
                if not message.get("more_body"):
                    return
        finally:
            running.cancel()
            await asyncio.wait({running})

    async def lines(self, url: str, count: int, **more: str) -> list[Object]:
        """The first events of a watch, or fewer if it ends."""
        events: list[Object] = []
        async for part in self.stream("GET", url, **more):
            if isinstance(part, bytes):
                events += [json.loads(line) for line in part.splitlines()]
            if len(events) >= count:
                break
        return events


def new_client(objects: Objects | None = None, token: str = ADMIN) -> Client:
    """A client of a new application."""
    objects = objects or new_objects()
    app = App(objects, Identity(objects, KEY, ADMIN), Access(objects), log_of)
    return Client(objects, app, token)


@asynccontextmanager
async def served(folder: Path) -> AsyncIterator[tuple[Client, Path]]:
    """The application behind TLS, and a kubeconfig for it."""
    client = new_client()
    pem = certificate(folder)
    async with serving(client.app, pem, 0) as port:
        kubeconfig = folder / "kubeconfig"
        write_kubeconfig(
            kubeconfig, url=f"https://127.0.0.1:{port}", certificate=pem, admin_token=ADMIN, namespace="default"
        )
        yield client, kubeconfig
