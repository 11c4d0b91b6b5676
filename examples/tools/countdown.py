"""The tool countdown: work that takes a known time and says how far it is."""

import time

from examples.tools.worker import arguments, progress, result


def main() -> None:
    """Count the argument ``seconds`` down, a quarter of a second at a time."""
    steps = int(arguments().get("seconds", 5) * 4)
    for step in range(steps):
        progress(step, steps, f"{(steps - step) / 4:g} s to go")
        time.sleep(0.25)
    result(f"Lift-off after {steps / 4:g} s")


if __name__ == "__main__":
    main()
