"""The whole embedded control plane in one process: storage, API, controllers, local processes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mcptasks_crds.manifest import load
from mcptasks_local.access import Access
from mcptasks_local.app import App
from mcptasks_local.collection import Collector
from mcptasks_local.controllers import Controllers
from mcptasks_local.errors import Object
from mcptasks_local.identity import Identity
from mcptasks_local.objects import Objects
from mcptasks_local.serving import certificate, serving, token, write_kubeconfig
from mcptasks_local.storage import Storage

NAMESPACES = ("default", "kube-system")
MAX_PODS = 32


@dataclass(frozen=True)
class Plane:
    """A control plane that runs."""

    objects: Objects
    app: App
    port: int
    kubeconfig: Path


@asynccontextmanager
async def plane(
    folder: Path,
    *,
    port: int = 0,
    namespace: str = "default",
    workdir: str | None = None,
    max_pods: int = MAX_PODS,
    end_pods: bool = False,
) -> AsyncIterator[Plane]:
    """Run a control plane whose state lies in ``folder``.

    Args:
        port: of the API on 127.0.0.1; 0 takes a free one.
        workdir: where containers run that name no folder of their own; default: the present one.
        max_pods: how many pods run at once.
        end_pods: whether the local processes are ended at the end; otherwise they go on, and the next control plane
            of the same folder adopts them.

    Raises:
        StorageInUse: another control plane serves from the folder.
        OSError: the port is taken.
    """
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    storage = Storage(folder / "objects.db")
    try:
        objects = Objects(storage)
        _bootstrap(objects, namespace)
        identity = Identity(objects, token(folder, "signing.key").encode(), token(folder, "admin.token"))

        def issue(namespace: str, account: str, pod: Object, audience: str, seconds: int) -> str:
            return identity.issue(namespace, account, audiences=[audience], seconds=seconds, pod=pod)[0]

        controllers = Controllers(
            objects, folder, issue, default_workdir=Path(workdir) if workdir else None, max_pods=max_pods
        )
        app = App(objects, identity, Access(objects), controllers.log)
        pem = certificate(folder)
        await controllers.start()  # before anybody can delete a pod: it says whose processes get their grace
        collector = asyncio.create_task(Collector(objects).run())
        try:
            async with serving(app, pem, port) as listening:
                kubeconfig = folder / "kubeconfig"
                write_kubeconfig(
                    kubeconfig,
                    url=f"https://127.0.0.1:{listening}",
                    certificate=pem,
                    admin_token=token(folder, "admin.token"),
                    namespace=namespace,
                )
                yield Plane(objects, app, listening, kubeconfig)
        finally:
            await controllers.stop(end_pods=end_pods)
            collector.cancel()
            await asyncio.gather(collector, return_exceptions=True)
    finally:
        storage.close()


def _bootstrap(objects: Objects, namespace: str) -> None:
    """Namespaces with their ServiceAccount, and our CRDs, as the installed version has them."""
    for name in dict.fromkeys((*NAMESPACES, namespace)):
        objects.ensure("namespaces", "", {"metadata": {"name": name}, "status": {"phase": "Active"}})
        objects.ensure("serviceaccounts", name, {"metadata": {"name": "default"}})
    for definition in load():
        objects.ensure("customresourcedefinitions.apiextensions.k8s.io", "", definition)
