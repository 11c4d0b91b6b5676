import base64
from pathlib import Path

import pytest

from mcptasks_local.environment import NotReady, References, Unsupported
from mcptasks_local.errors import Object
from mcptasks_local.volumes import Paths, mounts, plain, prepare

from .laptop import Laptop, issue_token


@pytest.mark.parametrize(
    ("text", "mapped"),
    [
        ("/mcptasks", "/L"),
        ("/mcptasks/arguments.json", "/L/arguments.json"),
        ("cat /mcptasks/a > /dev/termination-log", "cat /L/a > /T"),
        ("--in=/mcptasks:/data/x", "--in=/L:/D/x"),
        ("see '/mcptasks'.", "see '/L'."),
        ("/mcptasks/inner/x", "/I/x"),
        ("/mcptasks.d /mcptasks-2 /mcptasks_3 /mcptasksx", "/mcptasks.d /mcptasks-2 /mcptasks_3 /mcptasksx"),
        ("a/mcptasks ../mcptasks ${X}/mcptasks $X/mcptasks ~/mcptasks", None),
        ("https://host/mcptasks file:///mcptasks", None),
        ("", ""),
    ],
)
def test_whole_paths_are_replaced_in_one_pass(text: str, mapped: str | None) -> None:
    local = {"/mcptasks": "/L", "/data/": "/D", "/mcptasks/inner": "/I", "/dev/termination-log": "/T", "/L": "/twice"}
    assert Paths(local).local(text) == (text if mapped is None else mapped)


def test_without_mounts_nothing_is_replaced() -> None:
    assert Paths({}).local("/a /b") == "/a /b"


@pytest.fixture
async def references(tmp_path: Path) -> References:
    (tmp_path / "state").mkdir()
    world = Laptop(tmp_path / "state")
    world.create("secrets", {"metadata": {"name": "s"}, "data": {"a": base64.b64encode(b"\xff1").decode(), "b": ""}})
    world.create("configmaps", {"metadata": {"name": "c"}, "data": {"conf": "x=1"}})
    return References(world.objects)


def pod(*volumes: Object, mounts: list[Object] | None = None) -> Object:
    return {
        "metadata": {
            "name": "p",
            "namespace": "default",
            "uid": "u",
            "labels": {"l": "1"},
            "annotations": {"args": "é<>"},
        },
        "spec": {"volumes": list(volumes), "containers": [{"name": "tool", "volumeMounts": mounts or []}]},
    }


def made(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_every_known_kind_of_volume_is_made(tmp_path: Path, references: References) -> None:
    ref = {"fieldRef": {"fieldPath": "metadata.annotations['args']"}}
    item = pod(
        {"name": "e", "emptyDir": {}},
        {"name": "s", "secret": {"secretName": "s", "defaultMode": 0o400}},
        {"name": "c", "configMap": {"name": "c", "items": [{"key": "conf", "path": "sub/conf.ini"}]}},
        {"name": "d", "downwardAPI": {"items": [{"path": "arguments.json", **ref}]}},
        {"name": "h", "hostPath": {"path": "/"}},
        {
            "name": "p",
            "projected": {
                "sources": [
                    {"serviceAccountToken": {"path": "token", "audience": "mcptasks", "expirationSeconds": 600}},
                    {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
                    {"secret": {"name": "s", "items": [{"key": "a", "path": "secret", "mode": 0o600}]}},
                    {"configMap": {"name": "c"}},
                    {"secret": {"name": "gone", "optional": True}},
                ]
            },
        },
    )
    prepare(item, tmp_path / "v", references, issue_token)
    prepare(item, tmp_path / "v", references, issue_token)  # a control plane that begins again
    assert made(tmp_path / "v") == {
        "s/a": b"\xff1",
        "s/b": b"",
        "c/sub/conf.ini": b"x=1",
        "d/arguments.json": "é<>".encode(),
        "p/token": b"default/default/p/mcptasks/600",
        "p/labels": b'l="1"',
        "p/secret": b"\xff1",
        "p/conf": b"x=1",
    }
    assert (tmp_path / "v/e").is_dir()
    assert (tmp_path / "v/s/a").stat().st_mode & 0o777 == 0o400
    assert (tmp_path / "v/p/token").stat().st_mode & 0o777 == 0o600


def test_a_sub_path_that_is_not_there_is_made(tmp_path: Path, references: References) -> None:
    mount = {"name": "e", "mountPath": "/data", "subPath": "in/it"}
    item = pod({"name": "e", "emptyDir": {}}, mounts=[mount])
    prepare(item, tmp_path, references, issue_token)
    assert mounts(item["spec"]["containers"][0], item, tmp_path) == {"/data": str(tmp_path / "e/in/it")}
    assert (tmp_path / "e/in/it").is_dir()


def test_a_host_path_is_the_path(tmp_path: Path) -> None:
    item = pod({"name": "h", "hostPath": {"path": "/srv"}}, mounts=[{"name": "h", "mountPath": "/data"}])
    assert mounts(item["spec"]["containers"][0], item, tmp_path) == {"/data": "/srv"}


@pytest.mark.parametrize(
    ("volume", "error", "words"),
    [
        ({"secret": {"secretName": "gone"}}, NotReady, 'secret "gone" not found'),
        ({"configMap": {"name": "c", "items": [{"key": "z", "path": "z"}]}}, NotReady, "non-existent key: z"),
        ({"persistentVolumeClaim": {"claimName": "x"}}, Unsupported, "'v' is of kind persistentVolumeClaim; .* knows"),
        ({}, Unsupported, "nothing"),
        ({"projected": {"sources": [{"clusterTrustBundle": {}}]}}, Unsupported, "not clusterTrustBundle"),
        ({"downwardAPI": {"items": [{"path": "x", "resourceFieldRef": {}}]}}, Unsupported, "fieldRef only"),
        ({"secret": {"secretName": "s", "items": [{"key": "a", "path": "../x"}]}}, Unsupported, "leaves its volume"),
    ],
)
def test_what_can_not_be_made_is_said(
    tmp_path: Path, references: References, volume: Object, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        prepare(pod({"name": "v", **volume}), tmp_path, references, issue_token)


@pytest.mark.parametrize(
    ("mount", "words"),
    [
        ({"name": "x", "mountPath": "/a"}, "mounted but not defined"),
        ({"name": "e", "mountPath": "/"}, "below /"),
        ({"name": "e", "mountPath": "relative"}, "below /"),
        ({"name": "e", "mountPath": "/a", "subPath": "../.."}, "leaves its volume"),
    ],
)
def test_mounts_that_can_not_be_mapped_are_refused(tmp_path: Path, mount: Object, words: str) -> None:
    item = pod({"name": "e", "emptyDir": {}}, mounts=[mount])
    with pytest.raises(Unsupported, match=words):
        mounts(item["spec"]["containers"][0], item, tmp_path)


def test_a_plain_path_is_itself_and_another_is_reached_by_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert plain(tmp_path) == tmp_path
    for odd in ("a b", "it's", "x$y", "é"):
        (tmp_path / odd).mkdir()
        link = plain(tmp_path / odd)
        assert link.resolve() == tmp_path / odd
        assert plain(tmp_path / odd) == link
        assert not set(" '$é") & set(str(link))
    link.parent.chmod(0o755)
    with pytest.raises(Unsupported, match="not ours alone"):
        plain(tmp_path / odd)
