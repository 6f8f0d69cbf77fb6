"""The workspace of a thread (CMP-01): open files, notes, tasks, last observations, and the tool `update_workspace`."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.contract import ThinkingSettings, ToolCall, TurnBrief
from annabelle.core.errors import AnnabelleError, InvalidArguments, StorageTrouble, first_problem
from annabelle.core.home import write_atomically
from annabelle.core.tools import JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.thinker.hub_client import HubTools
from annabelle.thinker.prompt.token_budget import count_tokens, truncate_to_tokens
from annabelle.thinker.selection.selection import LOCAL_SERVER

MAX_FILES: Final = 10
MAX_NOTES: Final = 50
MAX_TASKS: Final = 50

_Path = Annotated[str, Field(min_length=1, max_length=400)]
_Line = Annotated[str, Field(min_length=1, max_length=500)]


class WorkspaceTask(BaseModel):
    model_config = ConfigDict(frozen=True)

    text: str
    done: bool = False


class WorkspaceState(BaseModel):
    """What is stored of a workspace; the files' text is read again."""

    model_config = ConfigDict(frozen=True)

    open_files: tuple[str, ...] = Field(default=(), max_length=MAX_FILES)
    notes: tuple[str, ...] = Field(default=(), max_length=MAX_NOTES)
    tasks: tuple[WorkspaceTask, ...] = Field(default=(), max_length=MAX_TASKS)


class WorkspaceChange(BaseModel):
    """The arguments of `update_workspace`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    open_files: tuple[_Path, ...] = ()
    close_files: tuple[str, ...] = ()
    add_notes: tuple[_Line, ...] = ()
    remove_notes: tuple[str, ...] = ()
    add_tasks: tuple[_Line, ...] = ()
    done_tasks: tuple[str, ...] = ()
    remove_tasks: tuple[str, ...] = ()


def apply_change(state: WorkspaceState, wanted: WorkspaceChange) -> WorkspaceState:
    """The state after a change; raises InvalidArguments for unknown tasks and full lists. What is removed and added in
    one change stays, so that a change is idempotent."""
    files = [path for path in dict.fromkeys([*state.open_files, *wanted.open_files]) if path not in wanted.close_files]
    notes = [note for note in state.notes if note not in wanted.remove_notes or note in wanted.add_notes]
    notes += [note for note in wanted.add_notes if note not in notes]
    known = {task.text for task in state.tasks}
    missing = [text for text in wanted.done_tasks if text not in {*known, *wanted.add_tasks, *wanted.remove_tasks}]
    if missing:
        raise InvalidArguments(f"There is no task {missing[0]!r}.", hint="Name a task by its exact text.")
    tasks = [task for task in state.tasks if task.text not in wanted.remove_tasks or task.text in wanted.add_tasks]
    tasks += [WorkspaceTask(text=text) for text in dict.fromkeys(wanted.add_tasks) if text not in known]
    tasks = [WorkspaceTask(text=task.text, done=task.done or task.text in wanted.done_tasks) for task in tasks]
    for name, many, most in (("files", files, MAX_FILES), ("notes", notes, MAX_NOTES), ("tasks", tasks, MAX_TASKS)):
        if len(many) > most:
            raise InvalidArguments(f"A workspace has room for {most} {name}.", hint="Take away what is done.")
    return WorkspaceState(open_files=tuple(files), notes=tuple(notes), tasks=tuple(tasks))


MAX_TOKENS: Final = 4_900
_OBSERVATIONS: Final = 6
_OBSERVATION_CHARS: Final = 160
_FEWEST_FILE_TOKENS: Final = 60

_log = logging.getLogger(__name__)

ReadFile = Callable[[str], Awaitable[ToolResult]]
"""Reads a file the way the agent itself would, with no more rights."""


class ThreadWorkspace:
    """The workspace of one thread, in one turn: rendered again for each request, never part of the history."""

    def __init__(self, path: Path, state: WorkspaceState, read_file: ReadFile) -> None:
        self._path, self.state, self._read_file = path, state, read_file
        self._texts: dict[str, str] = {}
        self._stale = True
        self._seen: deque[str] = deque(maxlen=_OBSERVATIONS)

    @classmethod
    async def open(cls, folder: Path, thread_id: str, read_file: ReadFile) -> ThreadWorkspace:
        """Load the workspace of a thread; empty if the file is missing or unreadable."""
        path = folder / f"{thread_id}.json"
        return cls(path, await asyncio.to_thread(_load_state, path), read_file)

    async def render(self) -> str:
        """The workspace as text, within its budget; empty if there is nothing in it."""
        if self._stale:
            await self._read_files()
        state = self.state
        sections = [
            _render_list("Tasks", [f"[{'x' if task.done else ' '}] {task.text}" for task in state.tasks]),
            _render_list("Notes", [f"- {note}" for note in state.notes]),
            _render_list("Seen last", [f"- {line}" for line in self._seen]) if state != WorkspaceState() else "",
        ]
        text = "\n".join(section for section in sections if section)
        text = truncate_to_tokens(text, MAX_TOKENS)
        return "\n".join(part for part in (self._render_files(MAX_TOKENS - count_tokens(text)), text) if part)

    def open_tasks(self) -> tuple[str, ...]:
        return tuple(task.text for task in self.state.tasks if not task.done)

    def observe(self, tool: str, result: ToolResult) -> None:
        """Note the result of a call. Open files are read again, because any call may have changed them."""
        self._stale = self._stale or bool(self.state.open_files)
        state = "failed" if result.is_error else "ok"
        first = " ".join(result.text.split())[:_OBSERVATION_CHARS]
        self._seen.append(f"{tool} {state}: {first}")

    async def save(self, state: WorkspaceState) -> None:
        """Store a new state; on disk when this returns."""
        try:
            await asyncio.to_thread(write_atomically, self._path, state.model_dump_json())
        except OSError as error:
            raise StorageTrouble(f"The workspace can not be written: {error.strerror}.") from error
        self._stale = self._stale or state.open_files != self.state.open_files
        self.state = state

    async def _read_files(self) -> None:
        self._stale = False
        found = await asyncio.gather(*(self._read_text(path) for path in self.state.open_files))
        self._texts = dict(zip(self.state.open_files, found, strict=True))

    async def _read_text(self, path: str) -> str:
        try:
            result = await self._read_file(path)
        except AnnabelleError as error:
            return f"(can not be read: {error.message})"
        return f"(can not be read: {result.text})" if result.is_error else result.text

    def _render_files(self, room: int) -> str:
        """Each file with its share of the budget; short files leave room for long ones."""
        waiting = sorted(self._texts.items(), key=lambda item: len(item[1]))
        shown: dict[str, str] = {}
        for place, (path, text) in enumerate(waiting):
            share = max(_FEWEST_FILE_TOKENS, room // (len(waiting) - place))
            piece = f"File {path}:\n{truncate_to_tokens(text, max(1, share - count_tokens(path) - 4))}"
            shown[path] = piece
            room -= count_tokens(piece)
        return "\n".join(shown[path] for path in self.state.open_files if path in shown)


def _render_list(title: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{title}:", *lines]) if lines else ""


def _load_state(path: Path) -> WorkspaceState:
    try:
        return WorkspaceState.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return WorkspaceState()
    except (OSError, ValidationError) as error:
        _log.warning("the workspace %s cannot be read: %s", path.name, type(error).__name__)
        return WorkspaceState()


FOLDER: Final = "workspaces"
READ_FILE: Final = "filer_read_file"
_THREAD_ID: Final = re.compile(r"[\w-]{1,120}")


class Workspaces:
    """The workspaces of one agent, in its folder."""

    def __init__(self, folder: Path, settings: ThinkingSettings, hub: HubTools) -> None:
        self._folder, self._settings, self._hub = folder / FOLDER, settings, hub

    async def open(self, brief: TurnBrief) -> ThreadWorkspace | None:
        """The workspace of this turn's thread, or None if it has none."""
        if (brief.conversational and not self._settings.workspace) or _THREAD_ID.fullmatch(brief.thread_id) is None:
            return None

        async def read_file(path: str) -> ToolResult:
            # Through the hub like any call of the agent, with its rights and trust labels.
            call = ToolCall(name=READ_FILE, arguments={"path": path}, message_id=brief.message_id)
            return await self._hub.call(call, brief.user_id)

        return await ThreadWorkspace.open(self._folder, brief.thread_id, read_file)


NAME: Final = "update_workspace"


def _text_array(description: str) -> JsonObject:
    return {"type": "array", "items": {"type": "string"}, "description": description}


_SCHEMA: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "open_files": _text_array("Paths to show with every step from now on"),
        "close_files": _text_array("Paths to show no more"),
        "add_notes": _text_array("What to keep in mind"),
        "remove_notes": _text_array("Notes to drop, by their exact text"),
        "add_tasks": _text_array("Steps to do"),
        "done_tasks": _text_array("Tasks that are done, by their exact text"),
        "remove_tasks": _text_array("Tasks to drop, by their exact text"),
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
        """Change the workspace; mistakes come back as a result for the model."""
        try:
            wanted = WorkspaceChange.model_validate(arguments)
            state = apply_change(self._workspace.state, wanted)
            await self._workspace.save(state)
        except ValidationError as error:
            place, reason = first_problem(error, "arguments")
            return ToolResult.failure(InvalidArguments(f"{place}: {reason}.", field=place).body())
        except AnnabelleError as error:
            return ToolResult.failure(error.body())
        left = len(self._workspace.open_tasks())
        text = (
            f"{len(state.open_files)} files open, {len(state.notes)} notes, {left} of {len(state.tasks)} tasks to do."
        )
        # Contains no foreign text.
        return ToolResult(text=text, trust="trusted")
