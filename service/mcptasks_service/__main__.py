"""``python -m mcptasks_service``: one replica, until SIGTERM."""

import gc
import logging
import socket

import uvicorn

from mcptasks_service.app import Service, create_app

GRACE_SECONDS = 2
"""How long open requests may take after SIGTERM; streams that can be resumed, and subscriptions, end at once."""


class Replica(uvicorn.Server):
    """uvicorn, which tells the service before it waits for open connections, not after."""

    def __init__(self, service: Service) -> None:
        self._service = service
        super().__init__(
            uvicorn.Config(
                service,
                host=service.settings.host,
                port=service.settings.port,
                timeout_graceful_shutdown=GRACE_SECONDS,
                access_log=False,
                server_header=False,
                log_config=None,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        # What is loaded by now lives as long as the process; a full collection that walks it stops streams for 45 ms.
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 50, 100)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._service.closing.set()
        await super().shutdown(sockets)


def main() -> None:
    """Serve."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    Replica(create_app()).run()


if __name__ == "__main__":
    main()
