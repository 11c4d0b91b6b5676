"""What ``mcptasks dev`` can be told."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Options:
    """See ``mcptasks dev --help``. A port of 0 is the one used last with the same state, else a free one."""

    port: int
    api_port: int
    tools: tuple[Path, ...]
    state: Path
    namespace: str
    max_pods: int
    reset: bool = False
    quiet: bool = False
    verbose: bool = False
