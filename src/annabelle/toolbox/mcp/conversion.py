"""Converts what a server lists and answers into tool specs and tool results."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from typing import cast, get_args

from pydantic import ValidationError

from annabelle.core.errors import ErrorBody, RetryByModel
from annabelle.core.tools import Audience, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.core.trust import Trust
from annabelle.toolbox.manifest import ServerProfile
from annabelle.toolbox.mcp.rpc import RpcAnswer

_NAME_LIMIT = 64
_UNFIT = re.compile(r"[^A-Za-z0-9_-]")


def exposed_name(server: str, tool: str) -> str:
    """`{server}_{tool}`, in the characters and the length that every model provider accepts."""
    name = _UNFIT.sub("_", f"{server}_{tool}")
    if len(name) <= _NAME_LIMIT:
        return name
    return f"{name[: _NAME_LIMIT - 9]}_{sha256(name.encode()).hexdigest()[:8]}"


def to_spec(server: ServerProfile, listed: JsonObject) -> ToolSpec | None:
    """The tool as the hub offers it, or None for an entry without a name."""
    name = listed.get("name")
    if not isinstance(name, str) or not name:
        return None
    description = listed.get("description")
    schema, output = listed.get("inputSchema"), listed.get("outputSchema")
    return ToolSpec(
        name=exposed_name(server.name, name),
        server=server.name,
        original_name=name,
        description=f"{server.tag} {description if isinstance(description, str) else ''}".rstrip(),
        input_schema=cast("JsonObject", schema) if isinstance(schema, dict) else {"type": "object"},
        output_schema=cast("JsonObject", output) if isinstance(output, dict) else None,
        annotations=_annotations(listed.get("annotations")),
        group=server.group,
        keywords=server.keywords,
        audience=_audience(server, listed.get("_meta")),
    )


def _audience(server: ServerProfile, meta: object) -> Audience:
    """Who may call a tool of our own servers; an unknown value means only the hub.

    Agents must not talk to the server that judges what they see, so the guardian's tools are always the hub's.
    """
    if server.role == "guardian":
        return "hub"
    if server.kind != "builtin":
        return "everyone"
    ours = cast("JsonObject", meta).get("annabelle") if isinstance(meta, dict) else None
    said = cast("JsonObject", ours).get("audience", "everyone") if isinstance(ours, dict) else "everyone"
    return cast("Audience", said) if said in get_args(Audience) else "hub"


def _annotations(value: object) -> ToolAnnotations:
    hints = cast("JsonObject", value) if isinstance(value, dict) else {}
    read_only = hints.get("readOnlyHint") is True
    return ToolAnnotations(
        read_only=read_only,
        destructive=not read_only and hints.get("destructiveHint") is not False,
        idempotent=hints.get("idempotentHint") is True,
        open_world=hints.get("openWorldHint") is not False,
    )


def to_result(
    answer: RpcAnswer, tool: ToolSpec, max_bytes: int, *, labelled: bool = False, ours: bool = False
) -> ToolResult:
    """The result for model and machine. Text past the limit is cut, with a note.

    `labelled`: the server itself says whether a result is trusted. Results of other servers are untrusted.
    `ours`: a built-in server. What such a one says for a person alone is no news to the model.
    """
    raw = answer.result
    if raw.get("resultType") == "input_required":
        error = RetryByModel(f"{tool.name} asked for input from a person, which is not possible here.")
        return ToolResult.failure(error.body())
    structured = raw.get("structuredContent")
    data = cast("JsonObject", structured) if isinstance(structured, dict) else None
    blocks = _list_blocks(raw.get("content"))
    shown = [block for block in blocks if ours and _is_for_person(block)]
    text = _join_text([block for block in blocks if block not in shown])
    display = _join_text(shown) if shown else None
    if not text and data is not None:
        text = json.dumps(data, ensure_ascii=False)
    is_error = raw.get("isError") is True
    # Errors of such a server are its own text; it has to label everything else.
    vouched = labelled and (is_error or (data is not None and data.get("trust") == "trusted"))
    trust: Trust = "trusted" if vouched else "untrusted"
    if answer.size > max_bytes:
        text, data = _cut_text(text, max_bytes), _drop_if_too_large(data, max_bytes)
        display = None if display is None else _cut_text(display, max_bytes)
    return ToolResult(
        text=text,
        display=display,
        structured=data,
        is_error=is_error,
        error=_parse_error(text, data, tool) if is_error else None,
        trust=trust,
    )


def _list_blocks(content: object) -> list[JsonObject]:
    blocks = cast("list[object]", content) if isinstance(content, list) else []
    return [cast("JsonObject", block) for block in blocks if isinstance(block, dict)]


def _is_for_person(block: JsonObject) -> bool:
    annotations = block.get("annotations")
    return isinstance(annotations, dict) and cast("JsonObject", annotations).get("audience") == ["user"]


def _join_text(blocks: list[JsonObject]) -> str:
    return "\n".join(map(_block_text, blocks))


def _block_text(block: JsonObject) -> str:
    kind = block.get("type")
    if kind == "text":
        return str(block.get("text", ""))
    if kind == "resource_link":
        return f"[{block.get('name') or 'resource'}: {block.get('uri')}]"
    if kind == "resource" and isinstance(block.get("resource"), dict):
        resource = cast("JsonObject", block["resource"])
        return str(resource["text"]) if "text" in resource else f"[resource {resource.get('uri')}]"
    data = block.get("data")
    size = len(data) * 3 // 4 if isinstance(data, str) else 0
    return f"[{kind}, {block.get('mimeType') or 'unknown type'}, {size} bytes]"


def _cut_text(text: str, max_bytes: int) -> str:
    encoded = text.encode("utf-8", errors="replace")
    if len(encoded) <= max_bytes:
        return text
    kept = encoded[:max_bytes].decode("utf-8", errors="ignore")
    return f"{kept}\n[cut: only the first {max_bytes} of {len(encoded)} bytes are shown; ask for less to see the rest]"


def _drop_if_too_large(data: JsonObject | None, max_bytes: int) -> JsonObject | None:
    return None if data is None or len(json.dumps(data, ensure_ascii=False).encode()) > max_bytes else data


def _parse_error(text: str, data: JsonObject | None, tool: ToolSpec) -> ErrorBody:
    try:
        return ErrorBody.model_validate((data or {}).get("error"))
    except ValidationError:
        return ErrorBody(code="tool_failed", message=text or f"{tool.name} failed without saying why.")
