"""Which GGUF file the embedded engine runs under the present settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from annabelle.core.errors import ConfigMistake, NotFound
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject
from annabelle.llm.registry import PACKAGED, Registry, packaged_weights
from annabelle.llm.types import ToolMode

# Reading a prompt is what takes time: 2,048 tokens are 8 s on two idle cores.
_PACKAGED_CONTEXT = 2048
# Tried by hand: colder, a model this small falls into loops, and without the two bounds it wanders off.
_PACKAGED_SAMPLING: JsonObject = {"temperature": 0.6, "min_p": 0.1, "repeat_penalty": 1.1}


@dataclass(frozen=True, slots=True)
class Weights:
    """A model file, its name, and how it wants to be used; a temperature in `sampling` beats the asked one."""

    name: str
    file: Path
    context: int
    tool_mode: ToolMode
    sampling: JsonObject = field(default_factory=dict[str, object])


def weights_for(name: str, home: Home) -> Weights:
    """The named model: packaged, pulled, or any GGUF file by its path. An empty name takes the packaged one."""
    if name in ("", PACKAGED):
        return _packaged()
    path = Path(name).expanduser()
    if name.endswith(".gguf") and path.is_file():
        return Weights(path.stem, path, 8192, "schema")
    registry = Registry(home)
    try:
        model = registry.find(name)
    except NotFound as error:
        raise ConfigMistake(
            f"EMBEDDED_MODEL names {name}, which is neither a known model nor a GGUF file.",
            hint=error.hint,
            field="EMBEDDED_MODEL",
        ) from error
    file = registry.file_of(model)
    if not file.is_file():
        raise ConfigMistake(
            f"The embedded model {name} has not been fetched yet.",
            hint=f"Run: annabelle models pull {name}",
            field="EMBEDDED_MODEL",
        )
    return Weights(model.name, file, model.context, model.tool_mode)


def _packaged() -> Weights:
    file = packaged_weights()
    if file is None:
        raise ConfigMistake(
            "No model is configured, and this install came without the packaged one.",
            hint="Set a key (GROQ_API_KEY), start Ollama or LM Studio, or run: annabelle models pull qwen2.5-0.5b",
        )
    return Weights(PACKAGED, file, _PACKAGED_CONTEXT, "none", _PACKAGED_SAMPLING)
