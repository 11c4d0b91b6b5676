"""Settings of the operator, from environment variables that begin with MCPTASKS_."""

import socket
from typing import Annotated, Any, Literal

from pydantic import AliasChoices, Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from mcptasks_operator.surroundings import Surroundings


class Settings(BaseSettings):
    """Every field can be set as MCPTASKS_<NAME>."""

    model_config = SettingsConfigDict(
        env_prefix="MCPTASKS_", extra="ignore", use_attribute_docstrings=True, populate_by_name=True
    )

    kubeconfig: str | None = None
    """Path of a kubeconfig; without it the pod's ServiceAccount, else the user's own kubeconfig."""
    namespaces: Annotated[list[str], NoDecode] = Field(
        default=[], validation_alias=AliasChoices("MCPTASKS_NAMESPACES", "MCPTASKS_NAMESPACE")
    )
    """Namespaces to serve, with commas between them; empty = all, which needs a ClusterRole."""
    worker_url: str = "http://mcptasks-service:8080"
    """Where the pods of tasks reach the worker API."""
    tool_service_account: str | None = None
    """ServiceAccount of a tool's pod whose template names none; without it the namespace's default. No token of it is
    mounted but the one for the worker API."""
    pod_security: Literal["restricted", "none"] = "restricted"
    """What a tool's template that says nothing of security means. restricted: user 65532, no privileges, no
    capabilities, the runtime's seccomp profile. none: what the image and the cluster say."""
    host: str = "0.0.0.0"
    """Address of /healthz, /readyz and /metrics."""
    port: int = Field(default=8081, ge=0, le=65535)
    """Port of /healthz, /readyz and /metrics; 0 takes a free one."""

    workers: int = Field(default=16, ge=1, le=256)
    """Tasks that are acted on at once. Each waits mostly for the API server; more only make its queues longer."""
    starts_per_second: float = Field(default=20, gt=0)
    """Jobs made per second at most. An unconfigured kube-controller-manager serves about 3.4 a second: what is made
    faster only waits there, out of our order."""
    start_burst: int = Field(default=20, ge=1)
    """Jobs made at once after a pause."""
    deletes_per_second: float = Field(default=100, gt=0)
    """Expired tasks deleted per second at most, so that an outage of an hour does not end in a burst."""
    audit_seconds: float = Field(default=600, gt=0)
    """Seconds between full lists, which repair what a lost DELETE event left behind."""
    pulse_seconds: float = Field(default=60, gt=0)
    """Seconds between lists of the unfinished tasks alone, which tell whether the watch still brings what happens."""
    watch_lag_seconds: float = Field(default=90, gt=0)
    """Seconds that a change may stay unseen by the watch before liveness fails: kopf itself renews a watch that has
    been silent for 70 s."""

    lease_name: str | None = "mcptasks-operator"
    """The Lease that elects the one replica that writes; empty = none, for a single replica on a laptop."""
    lease_namespace: str = "default"
    """Where that Lease is."""
    lease_seconds: int = Field(default=15, ge=2)
    """Seconds without a renewal after which another replica may lead."""
    renew_seconds: float = Field(default=4, gt=0)
    """Seconds between renewals; about a quarter of lease_seconds leaves room for three failures."""
    replica: str = Field(default_factory=socket.gethostname)
    """This replica's name in the Lease. In a cluster the pod's name; on a laptop one that a killed process shares with
    the next, which then need not wait for the Lease to run out."""

    @field_validator("namespaces", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        return [name.strip() for name in value.split(",") if name.strip()] if isinstance(value, str) else value

    @field_validator("lease_name", "tool_service_account")
    @classmethod
    def _empty_is_none(cls, value: str | None) -> str | None:
        return value or None

    @property
    def surroundings(self) -> Surroundings:
        """What every tool's pod gets."""
        return Surroundings(self.worker_url, self.tool_service_account, self.pod_security == "restricted")
