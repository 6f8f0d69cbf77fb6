"""What a tool gives back: structure for machines, a short text for the model, or an error that says what to do."""

from __future__ import annotations

from mcp_types import CallToolResult, TextContent
from pydantic import BaseModel, ConfigDict

from annabelle.core.errors import AnnabelleError, TooLarge


class Result(BaseModel):
    """Base of every tool's result. Override `text` where a sentence or the content itself reads better than JSON."""

    # Built when the list of tools is first asked for, parts and whole together, instead of each class by itself.
    model_config = ConfigDict(frozen=True, defer_build=True)

    def text(self) -> str:
        return self.model_dump_json(exclude_none=True)


def success(result: BaseModel, max_bytes: int) -> CallToolResult:
    """The result as it goes over the wire; one that is too large is refused, because half a structure is none."""
    text = result.text() if isinstance(result, Result) else result.model_dump_json(exclude_none=True)
    size = max(len(result.model_dump_json().encode()), len(text.encode("utf-8", errors="replace")))
    if size > max_bytes:
        raise TooLarge(
            f"The result is {size} bytes, more than the {max_bytes} a tool may return.",
            hint="Ask for less: a narrower path, a filter or a smaller limit.",
        )
    return CallToolResult(content=[TextContent(text=text)], structured_content=result.model_dump(mode="json"))


def failure(error: AnnabelleError, trace_id: str | None) -> CallToolResult:
    """An error the model can read and the router can sort: its sentence as text, its code and hint as structure."""
    body = error.body(trace_id)
    return CallToolResult(
        content=[TextContent(text=body.message if body.hint is None else f"{body.message} {body.hint}")],
        structured_content={"error": body.model_dump(mode="json", exclude_none=True)},
        is_error=True,
    )
