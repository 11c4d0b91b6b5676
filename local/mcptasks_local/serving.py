"""The API server on a port: TLS with a certificate of its own, an admin token, a kubeconfig."""

import asyncio
import base64
import contextlib
import datetime
import ipaddress
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
import yaml

NAMES = ("localhost", "kubernetes.default.svc")


def token(folder: Path, name: str) -> str:
    """A secret kept in ``folder``, made at the first call; only its owner can read it."""
    path = folder / name
    if not path.exists():
        path.touch(mode=0o600)
        path.write_text(secrets.token_urlsafe(32))
    return path.read_text()


def certificate(folder: Path) -> Path:
    """A self-signed certificate with its key in one PEM file, kept in ``folder``."""
    path = folder / "server.pem"
    if path.exists():
        return path
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.oid.NameOID.COMMON_NAME, "mcptasks")])
    now = datetime.datetime.now(datetime.UTC)
    hosts = [x509.DNSName(host) for host in NAMES] + [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=3650))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .add_extension(x509.KeyUsage(True, False, False, False, False, True, False, False, False), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + signed.public_bytes(serialization.Encoding.PEM)
    path.touch(mode=0o600)
    path.write_bytes(pem)
    return path


def write_kubeconfig(path: Path, *, url: str, certificate: Path, admin_token: str, namespace: str) -> None:
    """A kubeconfig that needs no other file."""

    pem = certificate.read_text()
    authority = pem[pem.index("-----BEGIN CERTIFICATE") :]
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "mcptasks",
        "clusters": [
            {
                "name": "mcptasks",
                "cluster": {
                    "server": url,
                    "certificate-authority-data": base64.b64encode(authority.encode()).decode(),
                },
            }
        ],
        "users": [{"name": "admin", "user": {"token": admin_token}}],
        "contexts": [{"name": "mcptasks", "context": {"cluster": "mcptasks", "user": "admin", "namespace": namespace}}],
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(config, sort_keys=False))


@asynccontextmanager
async def serving(app: Any, certificate: Path, port: int) -> AsyncIterator[int]:
    """Serve ``app`` on 127.0.0.1 and give the port (0 takes a free one).

    Raises:
        OSError: the port is taken.
    """
    # The protocol is named because asyncio sets TCP_NODELAY only then, and answers would wait 40 ms for an ACK.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    server = _Server(
        uvicorn.Config(
            app,
            ssl_certfile=certificate,
            log_level="warning",
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_keep_alive=75,
            timeout_graceful_shutdown=1,
        )
    )
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await task
        listener.close()


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: who starts it decides what a signal means."""

    @contextlib.contextmanager
    def capture_signals(self) -> Any:
        yield
