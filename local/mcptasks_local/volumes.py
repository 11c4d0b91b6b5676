"""A pod's volumes as folders, and the absolute paths of its mounts as paths of this machine.

A local process has no file system of its own. Each pod gets a private folder; its volumes are made there, and every
occurrence of a mount path in the command, the arguments and the values of variables is replaced by the local path:
``/mcptasks/arguments.json`` becomes ``…/pods/UID/volumes/mcptasks/arguments.json``. The same is done for the path of
the termination message.

What this can't do: a path that the program has inside (in a file, in its code) is not seen, a path that is put together
at run time from pieces is not either, ``file:///mcptasks/x`` is taken for a URL, and text of an argument that just
happens to name a mount path is changed like any other. Files are made once, before the pod starts: later changes of
an annotation or a Secret don't show, and tokens are not renewed. Read-only mounts can be written to. Nothing keeps a
program from the rest of the machine.
"""

import contextlib
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from mcptasks_local.environment import NotReady, References, Unsupported, field
from mcptasks_local.errors import Object

IssueToken = Callable[[str, str, Object, str, int], str]
"""namespace, service account, pod, audience, seconds → token."""
API_AUDIENCE = "https://kubernetes.default.svc"
_Files = dict[str, tuple[bytes, int]]
"""Path below the volume → content and mode."""


_PLAIN = re.compile(r"[\w./+@:,=-]+", re.ASCII)


def plain(folder: Path) -> Path:
    """A path to ``folder`` that a shell script can hold without quotes: itself, or a link to it.

    Scripts name mount paths unquoted, as they may, and local paths are put there in their stead.

    Raises:
        Unsupported: the place for the link belongs to somebody else.
    """
    if _PLAIN.fullmatch(str(folder)):
        return folder
    # The same at each start: processes that are adopted know no other.
    place = Path(tempfile.gettempdir()) / f"mcptasks-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}"
    with contextlib.suppress(FileExistsError):
        place.mkdir(mode=0o700)
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise Unsupported(f"{place}, which should lead to {folder}, is not ours alone; remove it")
    link = place / "state"
    link.unlink(missing_ok=True)
    link.symlink_to(folder, target_is_directory=True)
    return link


class Paths:
    """Replaces absolute paths of a container by local ones, all in one pass, the longest first."""

    def __init__(self, local: Mapping[str, str]) -> None:
        self._local = {"/" + path.strip("/"): to for path, to in local.items()}
        words = "|".join(re.escape(path) for path in sorted(self._local, key=len, reverse=True))
        # No path goes on to the left (a/mnt, $X/mnt, //mnt), and the last name is whole on the right (/mnt.d, /mnt-2).
        self._pattern = re.compile(rf"(?<![\w.\-/}})*~+@%\]])(?:{words})(?![\w\-]|\.\w)") if words else None

    def local(self, text: str) -> str:
        """``text`` with every mount path replaced."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._local[found[0]], text)


def mounts(container: Object, pod: Object, folder: Path) -> dict[str, str]:
    """Mount path → local path of a container; volumes are below ``folder``.

    Raises:
        Unsupported: a mount without its volume, or at a place that can't be replaced.
    """
    volumes = {volume["name"]: volume for volume in pod["spec"].get("volumes") or ()}
    out: dict[str, str] = {}
    for mount in container.get("volumeMounts") or ():
        path, name = mount["mountPath"], mount["name"]
        if name not in volumes:
            raise Unsupported(f"volume {name!r} is mounted but not defined")
        if not path.startswith("/") or not path.strip("/"):
            raise Unsupported(f"a local process can't have a volume mounted at {path!r}: name a folder below /")
        host = volumes[name].get("hostPath")
        root = host["path"] if host is not None else str(folder / name)
        below = mount.get("subPath") or ""
        if ".." in below.split("/") or below.startswith("/"):
            raise Unsupported(f"subPath {below!r} leaves its volume")
        out[path] = os.path.join(root, below) if below else root
    return out


def prepare(pod: Object, folder: Path, references: References, issue_token: IssueToken) -> None:
    """Make the pod's volumes below ``folder``; doing it again does no harm.

    Raises:
        NotReady: a Secret, a ConfigMap or a key is not there.
        Unsupported: a kind of volume that is not known.
    """
    for volume in pod["spec"].get("volumes") or ():
        place = folder / volume["name"]
        if "hostPath" in volume:
            continue
        files = _content(volume, pod, references, issue_token)
        place.mkdir(parents=True, exist_ok=True)
        for path, (content, mode) in files.items():
            target = place / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)
            with os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
            target.chmod(mode)
    for container in (*(pod["spec"].get("initContainers") or ()), *pod["spec"]["containers"]):
        for mount in container.get("volumeMounts") or ():
            if (below := mount.get("subPath")) and not (place := folder / mount["name"] / below).exists():
                place.mkdir(parents=True)  # as the kubelet does for a subPath that is not there


def _content(volume: Object, pod: Object, references: References, issue_token: IssueToken) -> _Files:
    if "emptyDir" in volume:
        return {}
    if (projected := volume.get("projected")) is not None:
        out: _Files = {}
        for source in projected.get("sources") or ():
            for kind, wanted in source.items():
                mode = projected.get("defaultMode", 0o644)
                out |= _source(kind, wanted, wanted.get("name", ""), mode, pod, references, issue_token)
        return out
    for kind in ("secret", "configMap", "downwardAPI"):
        if (wanted := volume.get(kind)) is not None:
            name, mode = wanted.get("secretName") or wanted.get("name", ""), wanted.get("defaultMode", 0o644)
            return _source(kind, wanted, name, mode, pod, references, issue_token)
    kinds = ", ".join(sorted(set(volume) - {"name"})) or "nothing"
    raise Unsupported(
        f"volume {volume['name']!r} is of kind {kinds}; the embedded control plane knows emptyDir, hostPath, secret, "
        "configMap, downwardAPI and projected"
    )


def _source(
    kind: str, wanted: Object, name: str, mode: int, pod: Object, references: References, issue_token: IssueToken
) -> _Files:
    namespace, optional = pod["metadata"]["namespace"], bool(wanted.get("optional"))
    match kind:
        case "secret":
            return _items(references.secret(namespace, name, optional=optional), wanted, mode)
        case "configMap":
            return _items(references.config_map(namespace, name, optional=optional), wanted, mode)
        case "downwardAPI":
            out: _Files = {}
            for item in wanted.get("items") or ():
                if "fieldRef" not in item:
                    raise Unsupported(f"the downward API of the embedded control plane knows fieldRef only: {item}")
                text = field(pod, item["fieldRef"]["fieldPath"])
                out[_inside(item["path"])] = text.encode(errors="surrogatepass"), item.get("mode", mode)
            return out
        case "serviceAccountToken":
            account = pod["spec"].get("serviceAccountName") or "default"
            audience, seconds = wanted.get("audience") or API_AUDIENCE, wanted.get("expirationSeconds", 3600)
            token = issue_token(namespace, account, pod, audience, seconds)
            return {_inside(wanted["path"]): (token.encode(), 0o600)}
    raise Unsupported(f"a projected volume knows secret, configMap, downwardAPI and serviceAccountToken, not {kind}")


def _items(entries: Mapping[str, bytes], wanted: Object, mode: int) -> _Files:
    if (items := wanted.get("items")) is None:
        return {key: (value, mode) for key, value in entries.items()}
    missing = [item["key"] for item in items if item["key"] not in entries]
    if missing and not wanted.get("optional"):
        raise NotReady(f"references non-existent key: {missing[0]}")
    return {
        _inside(item["path"]): (entries[item["key"]], item.get("mode", mode))
        for item in items
        if item["key"] in entries
    }


def _inside(path: str) -> str:
    if path.startswith("/") or ".." in path.split("/"):
        raise Unsupported(f"the path {path!r} leaves its volume")
    return path
