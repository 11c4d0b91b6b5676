"""Runs a module that ends when its parent does: ``python -m mcptasks_local.dev.lifeline MODULE``.

Standard input is a pipe that the parent holds open and never writes to: it closes with the parent, however that dies.
Linux's PR_SET_PDEATHSIG would do so on Linux alone.
"""

import os
import runpy
import signal
import sys
import threading
import time

GRACE = 3.0
"""Seconds between the polite signal and the end."""


def _watch(pipe: int) -> None:
    while os.read(pipe, 512):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os._exit(1)


def main(argv: list[str]) -> None:
    """Run the module named in ``argv[1]`` as the main program."""
    # A copy of the pipe, so that the module may do with its standard input what it likes.
    pipe = os.dup(0)
    threading.Thread(target=_watch, args=(pipe,), name="lifeline", daemon=True).start()
    sys.argv = argv[1:]
    runpy.run_module(argv[1], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv)
