"""``python -m mcptasks_operator``: one replica, with lines for people on standard error."""

import asyncio
import logging
import signal
import sys

from kubernetes.aio.config import ConfigException
from pydantic import ValidationError

from mcptasks_operator.app import run
from mcptasks_operator.feed import WatchEnded
from mcptasks_operator.lease import LeaseLost
from mcptasks_operator.settings import Settings

logger = logging.getLogger("mcptasks_operator")


def main() -> int:
    """Run until SIGTERM or SIGINT; the exit code is 0 then, and 1 if the process must be started again."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname).1s %(message)s", datefmt="%H:%M:%S")
    logging.getLogger("kopf").setLevel(logging.WARNING)
    try:
        settings = Settings()
    except ValidationError as error:
        logger.error("%s", error)
        return 2
    try:
        asyncio.run(_until_signal(settings))
    except (LeaseLost, WatchEnded, ConfigException, OSError) as error:
        logger.error("%s", error)
        return 1
    return 0


async def _until_signal(settings: Settings) -> None:
    stop = asyncio.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    await run(settings, stop)


if __name__ == "__main__":
    sys.exit(main())
