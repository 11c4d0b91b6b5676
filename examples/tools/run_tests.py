"""The tool run-tests: runs pytest, reports each finished test as progress, and the outcome as its result."""

import re
import subprocess
import sys
import time

from examples.tools.worker import arguments, progress, result

COLLECTED = re.compile(r"collected (\d+) items?(?: / (\d+) deselected)?")
FINISHED = re.compile(r"^(\S+?)::(\S+).* (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)")
REPORT_EVERY = 0.3
TAIL = 40


def main() -> None:
    """Run the tests below the argument ``path``."""
    path = arguments().get("path", "tests")
    command = [sys.executable, "-m", "pytest", "--verbose", "--color=no", "-p", "no:cacheprovider", "--", path]
    began, reported, done, total = time.monotonic(), 0.0, 0, None
    lines: list[str] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as tests:
        for line in tests.stdout or ():
            print(line, end="", flush=True)
            lines.append(line.rstrip())
            if found := COLLECTED.search(line):
                total = int(found[1]) - int(found[2] or 0)
            elif found := FINISHED.match(line):
                done += 1
                if time.monotonic() - reported > REPORT_EVERY:
                    reported = time.monotonic()
                    progress(done, total, found[1])
    seconds = round(time.monotonic() - began, 2)
    verdict = lines[-1].strip("= ")
    text = verdict if tests.returncode == 0 else "\n".join(lines[-TAIL:])
    summary = {"exitCode": tests.returncode, "tests": done, "seconds": seconds, "verdict": verdict}
    result(text, summary, is_error=tests.returncode != 0)


if __name__ == "__main__":
    main()
