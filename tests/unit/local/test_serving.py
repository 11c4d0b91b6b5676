import base64
import socket
import ssl
import stat
from pathlib import Path

import aiohttp
import pytest
import yaml

from mcptasks_local.serving import certificate, serving, token
from tests.unit.local.widgets import served


async def test_a_kubeconfig_is_all_a_client_needs(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, kubeconfig):
        config = yaml.safe_load(kubeconfig.read_text())
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        headers = {"Authorization": f"Bearer {user['token']}"}
        async with (
            aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(ssl=context)) as session,
            session.get(cluster["server"] + "/api/v1/namespaces") as answer,
        ):
            names = [item["metadata"]["name"] for item in (await answer.json())["items"]]
        assert names == ["default"]
        assert stat.S_IMODE(kubeconfig.stat().st_mode) == 0o600


def test_certificate_and_tokens_stay(tmp_path: Path) -> None:
    path = certificate(tmp_path)
    text = path.read_bytes()
    assert certificate(tmp_path).read_bytes() == text
    assert token(tmp_path, "admin") == token(tmp_path, "admin") != token(tmp_path, "other")
    for kept in (path, tmp_path / "admin"):
        assert stat.S_IMODE(kept.stat().st_mode) == 0o600


async def test_a_port_that_is_taken_is_said_at_once(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        with pytest.raises(OSError, match="in use"):
            async with serving(lambda *_: None, certificate(tmp_path), taken.getsockname()[1]):
                pass
