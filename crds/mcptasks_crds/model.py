"""The base of every model of a kind."""

from typing import Any

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class Model(BaseModel):
    """camelCase on the wire, snake_case here; what a newer version added is ignored, not refused."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="ignore", use_attribute_docstrings=True
    )

    def wire(self) -> dict[str, Any]:
        """As the API server takes it: camelCase, without what is not set."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)


class Metadata(Model):
    """The part of ``metadata`` that we read and write."""

    name: str = ""
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    generation: int | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
