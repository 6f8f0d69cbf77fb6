"""Base classes of models."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel


class FrozenModel(BaseModel):
    model_config = ConfigDict(frozen=True)


class CamelModel(FrozenModel):
    """camelCase outside of Python."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)
