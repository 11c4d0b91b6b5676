"""Runs a module on its parent's word, and ends it with its parent: ``python -m …lifeline MODULE [WARM]``.

Standard input is a pipe from the parent. One byte on it says go; until then the module WARM is imported, which takes
most of a start's time. It closes with the parent, however that dies (Linux's PR_SET_PDEATHSIG would do that on Linux
alone).
"""

import importlib
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
    """Run the module ``argv[1]`` as the main program; ``argv[2]``, if given, is what it will import."""
    for module in argv[2:]:
        importlib.import_module(module)
    # A copy of the pipe, so that the module may do with its standard input what it likes.
    pipe = os.dup(0)
    if not os.read(pipe, 1):
        return
    threading.Thread(target=_watch, args=(pipe,), name="lifeline", daemon=True).start()
    sys.argv = argv[1:2]
    runpy.run_module(argv[1], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv)
