"""Settings of the service, from environment variables that begin with MCPTASKS_."""

from typing import Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from mcptasks_crds.sizes import ARGUMENTS_LIMIT
from mcptasks_crds.times import RATE_PATTERN


class Settings(BaseSettings):
    """Every field can be set as MCPTASKS_<NAME>; lists and objects as JSON."""

    model_config = SettingsConfigDict(env_prefix="MCPTASKS_", extra="ignore", use_attribute_docstrings=True)

    host: str = "0.0.0.0"
    """Address to listen on."""
    port: int = Field(default=8080, ge=0, le=65535)
    """Port to listen on; 0 takes a free one."""
    kubeconfig: str | None = None
    """Path of a kubeconfig; without it the pod's ServiceAccount, else the user's own kubeconfig."""
    namespace: str = "default"
    """The namespace whose tools are offered and where tasks are made."""
    identity: Literal["none"] = "none"
    """How callers are identified. none: nobody is; whoever holds a task's id can read it."""
    signing_keys: list[SecretStr] = []
    """Keys, of 32 characters or more, that sign session ids and event ids; the first signs, all verify. Every replica
    needs the same, and they must outlive restarts. Without one a replica makes its own, which no other knows."""
    session_days: float = Field(default=30, gt=0)
    """Days a session id is good for. Clients can't renew one, so it must be longer than any session."""
    body_limit: int = Field(default=4 * 1024 * 1024, ge=1024)
    """Largest request body in bytes."""
    ping_seconds: float = Field(default=15, gt=0)
    """Seconds of silence after which an open stream gets a comment: shorter than any proxy's idle time-out."""
    allowed_hosts: list[str] = []
    """Host headers that are served, such as mcp.example.com or localhost:*; empty = any. Guards a service on a laptop
    against DNS rebinding."""
    allowed_origins: list[str] = []
    """Origin headers that are served; a request with another one gets 403. Empty = no browser page may call."""

    creations: str = Field(default="600/minute", pattern=RATE_PATTERN)
    """How often one caller may create a task."""
    polls: str = Field(default="6000/minute", pattern=RATE_PATTERN)
    """How often one caller may read the state or result of tasks, or list them."""
    lookups: str = Field(default="60/minute", pattern=RATE_PATTERN)
    """How often one caller may ask for ids that this replica does not know: each costs a request to the API server."""
    open_tasks: int = Field(default=500, ge=1)
    """How many tasks of one caller may be unfinished at once."""
    rate_storage: str = "memory://"
    """Where rates are counted: memory:// (each replica counts its own), or async+redis://HOST (all together)."""
    argument_limit: int = Field(default=ARGUMENTS_LIMIT, ge=1024, le=900 * 1024)
    """Largest encoded arguments in bytes."""
    result_cache: int = Field(default=64 * 1024 * 1024, ge=0)
    """Bytes of results kept in memory, so that reading one again costs the API server nothing."""
    progress_seconds: float = Field(default=1.0, ge=0)
    """Shortest time between two writes of a task's progress; what comes in between is dropped but for the last."""
