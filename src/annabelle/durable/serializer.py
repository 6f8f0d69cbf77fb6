"""How the engine writes values down: as JSON, never as pickle."""

from __future__ import annotations

import json
from typing import cast

from dbos import Serializer

_ERROR = "__engine_error__"


class JsonSerializer(Serializer):
    """Plain JSON with everything but ASCII escaped, so that any string survives on both databases."""

    def name(self) -> str:
        return "annabelle_json"

    def serialize(self, data: object) -> str:
        if isinstance(data, BaseException):
            # Only the engine's own errors get here; ours are values by then.
            data = {_ERROR: f"{type(data).__name__}: {data}"}
        return json.dumps(data, separators=(",", ":"))

    def deserialize(self, serialized_data: str) -> object:
        value = json.loads(serialized_data)
        if isinstance(value, dict) and _ERROR in value:
            return RuntimeError(str(cast("dict[str, object]", value)[_ERROR]))
        return cast("object", value)
