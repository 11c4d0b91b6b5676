"""What a container is given: its variables, `$(VAR)` in them and in its command, and what they are taken from."""

import base64
import os
import re
import sys
from collections.abc import Mapping

from mcptasks_crds.errors import McpTasksError
from mcptasks_local.errors import ApiError, Object
from mcptasks_local.objects import Objects

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")
_MAP_ENTRY = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_INHERITED = ("HOME", "LANG", "TMPDIR", "VIRTUAL_ENV")


class NotReady(McpTasksError):
    """Something that a container needs is not there (yet); the pod waits for it."""


class Unsupported(McpTasksError):
    """A pod asks for what the embedded control plane can't do."""


def expand(text: str, variables: Mapping[str, str]) -> str:
    """`$(NAME)` replaced as the kubelet does it: `$$` is `$`, an unknown name stays as it is written."""
    return _REFERENCE.sub(
        lambda found: "$" if found[1] is None else variables.get(found[1], found[0]),
        text,
    )


def inherited(surroundings: Mapping[str, str], hostname: str) -> dict[str, str]:
    """What a program needs of the control plane's own environment, and nothing that may be a secret.

    The running Python's folder leads in PATH, so that `python` has this project's packages.
    """
    kept = {k: v for k, v in surroundings.items() if k in _INHERITED or k.startswith("LC_")}
    path = os.pathsep.join([os.path.dirname(sys.executable), surroundings.get("PATH", os.defpath)])
    return {**kept, "PATH": path, "TERM": "dumb", "HOSTNAME": hostname}


def field(pod: Object, path: str) -> str:
    """One field of a pod by the downward API; whole maps come as ``key="value"`` lines.

    Raises:
        Unsupported: no such field.
    """
    meta, spec = pod["metadata"], pod["spec"]
    if entry := _MAP_ENTRY.fullmatch(path):
        return str((meta.get(entry[1]) or {}).get(entry[2], ""))
    match path:
        case "metadata.name" | "metadata.namespace" | "metadata.uid":
            return str(meta[path.partition(".")[2]])
        case "metadata.labels" | "metadata.annotations":
            values = meta.get(path.partition(".")[2]) or {}
            return "\n".join(f"{key}={_quoted(values[key])}" for key in sorted(values))
        case "spec.serviceAccountName":
            return str(spec.get("serviceAccountName") or "default")
        case "spec.nodeName":
            return str(spec.get("nodeName") or "")
        case "status.podIP" | "status.podIPs" | "status.hostIP" | "status.hostIPs":
            return "127.0.0.1"
    raise Unsupported(f"the field {path!r} is not known to the downward API of the embedded control plane")


class References:
    """Reads the Secrets and ConfigMaps that a pod names."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def secret(self, namespace: str, name: str, *, optional: bool = False) -> dict[str, bytes]:
        """A Secret's entries.

        Raises:
            NotReady: it is not there.
        """
        found = self._find("secrets", "secret", namespace, name, optional)
        return {key: base64.b64decode(value) for key, value in (found.get("data") or {}).items()}

    def config_map(self, namespace: str, name: str, *, optional: bool = False) -> dict[str, bytes]:
        """A ConfigMap's entries.

        Raises:
            NotReady: it is not there.
        """
        found = self._find("configmaps", "configmap", namespace, name, optional)
        texts = {key: value.encode() for key, value in (found.get("data") or {}).items()}
        return texts | {key: base64.b64decode(value) for key, value in (found.get("binaryData") or {}).items()}

    def _find(self, resource: str, word: str, namespace: str, name: str, optional: bool) -> Object:
        try:
            return self._objects.get(self._objects.resource(resource), namespace, name)
        except ApiError:
            if optional:
                return {}
            raise NotReady(f'{word} "{name}" not found') from None


def variables(container: Object, pod: Object, references: References) -> dict[str, str]:
    """A container's own variables: `envFrom`, then `env` in its order; each may use those before it.

    Raises:
        NotReady: a Secret, a ConfigMap or a key is not there.
        Unsupported: a source that is not known.
    """
    namespace, out = pod["metadata"]["namespace"], dict[str, str]()
    for group in container.get("envFrom") or ():
        out.update((group.get("prefix", "") + key, value) for key, value in _group(group, namespace, references))
    for entry in container.get("env") or ():
        if (source := entry.get("valueFrom")) is None:
            out[entry["name"]] = expand(entry.get("value") or "", out)
        elif (value := _value(source, pod, references)) is not None:
            out[entry["name"]] = value
    return out


def _group(group: Object, namespace: str, references: References) -> list[tuple[str, str]]:
    for word, read in (("secretRef", references.secret), ("configMapRef", references.config_map)):
        if (wanted := group.get(word)) is not None:
            entries = read(namespace, wanted["name"], optional=bool(wanted.get("optional")))
            return [(key, value.decode(errors="surrogateescape")) for key, value in sorted(entries.items())]
    raise Unsupported(f"envFrom knows secretRef and configMapRef, not {', '.join(sorted(group))}")


def _value(source: Object, pod: Object, references: References) -> str | None:
    if (wanted := source.get("fieldRef")) is not None:
        return field(pod, wanted["fieldPath"])
    kinds = (("secretKeyRef", references.secret, "Secret"), ("configMapKeyRef", references.config_map, "ConfigMap"))
    for word, read, kind in kinds:
        if (wanted := source.get(word)) is not None:
            namespace, name, optional = pod["metadata"]["namespace"], wanted["name"], bool(wanted.get("optional"))
            found = read(namespace, name, optional=optional).get(wanted["key"])
            if found is None and not optional:
                raise NotReady(f"couldn't find key {wanted['key']} in {kind} {namespace}/{name}")
            return None if found is None else found.decode(errors="surrogateescape")
    raise Unsupported(f"valueFrom knows fieldRef, secretKeyRef and configMapKeyRef, not {', '.join(sorted(source))}")


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped.replace(chr(13), chr(92) + "r")}"'
