"""The environment in which a dev server runs the operator and the service."""

import json
from dataclasses import dataclass


@dataclass(frozen=True)
class Program:
    """A module that runs as a child process; ``port`` answers /readyz and /metrics. ``warm`` is what takes it long to
    import."""

    name: str
    module: str
    warm: str
    port: int
    env: dict[str, str]

    @property
    def metrics_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/metrics"


def service(kubeconfig: str, namespace: str, port: int, signing_key: str) -> Program:
    """The MCP endpoint. Limits are there to stop a runaway loop, not to be met by hand."""
    return Program(
        "service",
        "mcptasks_service",
        "mcptasks_service.app",
        port,
        {
            "MCPTASKS_KUBECONFIG": kubeconfig,
            "MCPTASKS_NAMESPACE": namespace,
            "MCPTASKS_HOST": "127.0.0.1",
            "MCPTASKS_PORT": str(port),
            "MCPTASKS_SIGNING_KEYS": json.dumps([signing_key]),
            # A page in the developer's browser must not reach it under another name (DNS rebinding).
            "MCPTASKS_ALLOWED_HOSTS": json.dumps([f"127.0.0.1:{port}", f"localhost:{port}"]),
            "MCPTASKS_CREATIONS": "6000/minute",
            "MCPTASKS_POLLS": "60000/minute",
            "MCPTASKS_LOOKUPS": "6000/minute",
            "MCPTASKS_OPEN_TASKS": "5000",
        },
    )


def operator(kubeconfig: str, namespace: str, port: int, service_port: int) -> Program:
    """The operator, whose Jobs report to the service."""
    return Program(
        "operator",
        "mcptasks_operator",
        "mcptasks_operator.app",
        port,
        {
            "MCPTASKS_KUBECONFIG": kubeconfig,
            "MCPTASKS_NAMESPACE": namespace,
            "MCPTASKS_HOST": "127.0.0.1",
            "MCPTASKS_PORT": str(port),
            "MCPTASKS_WORKER_URL": f"http://127.0.0.1:{service_port}",
            # Paced for a cluster's controller manager otherwise; the one here starts well over a hundred a second.
            "MCPTASKS_STARTS_PER_SECOND": "100",
            "MCPTASKS_START_BURST": "100",
        },
    )
