"""`update_workspace`: the model's hand on its workspace."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

from annabelle.core.errors import AnnabelleError, InvalidArguments
from annabelle.core.tools import JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.thinker.compress.desk import DeskChange, changed
from annabelle.thinker.compress.workspace import ThreadWorkspace
from annabelle.thinker.loop.local_tools import LOCAL_SERVER

NAME: Final = "update_workspace"


def _texts(description: str) -> JsonObject:
    return {"type": "array", "items": {"type": "string"}, "description": description}


_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "open_files": _texts("Paths to show with every step from now on"),
        "close_files": _texts("Paths to show no more"),
        "add_notes": _texts("What to keep in mind"),
        "remove_notes": _texts("Notes to drop, by their exact text"),
        "add_tasks": _texts("Steps to do"),
        "done_tasks": _texts("Tasks that are done, by their exact text"),
        "remove_tasks": _texts("Tasks to drop, by their exact text"),
    },
    "additionalProperties": False,
}

SPEC: Final = ToolSpec(
    name=NAME,
    server=LOCAL_SERVER,
    original_name=NAME,
    description="Change your workspace: the files you have open, your notes and your task list. You see it in "
    "<workspace> with every step, always up to date, so there is no need to read an open file again.",
    input_schema=_SCHEMA,
    annotations=ToolAnnotations(read_only=False, destructive=False, idempotent=True, open_world=False),
)


class UpdateWorkspace:
    """The tool of one turn."""

    def __init__(self, workspace: ThreadWorkspace) -> None:
        self._workspace = workspace

    @property
    def spec(self) -> ToolSpec:
        return SPEC

    async def call(self, arguments: JsonObject) -> ToolResult:
        """Change the workspace; what is wrong with a change comes back as a result the model can act on."""
        try:
            wanted = DeskChange.model_validate(arguments)
            desk = changed(self._workspace.desk, wanted)
            await self._workspace.change(desk)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"]) or "arguments"
            return ToolResult.failure(InvalidArguments(f"{place}: {first['msg']}.", field=place).body())
        except AnnabelleError as error:
            return ToolResult.failure(error.body())
        left = sum(not task.done for task in desk.tasks)
        text = f"{len(desk.open_files)} files open, {len(desk.notes)} notes, {left} of {len(desk.tasks)} tasks to do."
        # Its own words: nothing of what others wrote is in them.
        return ToolResult(text=text, trust="trusted")
