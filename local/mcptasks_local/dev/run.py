"""``mcptasks dev`` from its options to its exit code.

Operator and service take most of a second to import, and so does the control plane: they are started first, and what is
heavy here is imported while they warm up.
"""

import asyncio
import os
import signal
import time

from mcptasks_local.dev import programs
from mcptasks_local.dev.crew import Crew
from mcptasks_local.dev.folder import DevError, StateFolder
from mcptasks_local.dev.options import Options
from mcptasks_local.dev.screen import Screen
from mcptasks_local.dev.tools import ToolDocument, read_tools


def run(options: Options) -> int:
    """Run a dev server to its end; the exit code."""
    began = time.monotonic()
    screen = Screen(quiet=options.quiet, verbose=options.verbose)
    folder = StateFolder(options.state)
    try:
        documents = read_tools(options.tools, options.namespace)
        with folder.held(reset=options.reset):
            asyncio.run(_run(options, folder, documents, screen, began))
    except DevError as error:
        screen.fail(str(error))
        return 1
    return 0


async def _run(
    options: Options, folder: StateFolder, documents: list[ToolDocument], screen: Screen, began: float
) -> None:
    port = folder.port("service", options.port, "--port")
    api_port = folder.port("api", options.api_port, "--api-port")
    operator_port = folder.port("operator", 0, "")
    crew = Crew(
        (
            programs.service(str(folder.kubeconfig), options.namespace, port, folder.signing_key()),
            programs.operator(str(folder.kubeconfig), options.namespace, operator_port, port),
        ),
        folder,
        screen,
    )
    stop = asyncio.Event()

    def signalled() -> None:
        if stop.is_set():
            crew.kill()
            os._exit(130)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, signalled)
    await crew.start()
    try:
        from mcptasks_local.dev.server import DevServer

        await DevServer(options, folder, screen, crew, port, api_port, began).serve(documents, stop)
    finally:
        await crew.stop()
