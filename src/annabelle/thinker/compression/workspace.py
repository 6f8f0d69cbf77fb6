"""The workspace of a thread (CMP-01), and the tool `update_workspace`.

It has two levels (CMP-11). The long-term one, the objective with its tasks and steps and the notes, is bounded when it
is changed, so that every request has all of it, however much of the conversation was cut. The short-term one, the step
that is next and the last observations, gets the room that is left.
"""

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
LONG_TERM_TOKENS: Final = 3_000
"""Of objective, tasks and notes together; the rest of the workspace is for files and the short-term level."""

_Path = Annotated[str, Field(min_length=1, max_length=400)]
_Line = Annotated[str, Field(min_length=1, max_length=500)]


class WorkspaceTask(BaseModel):
    model_config = ConfigDict(frozen=True)

    text: str
    done: bool = False
    step_of: str = Field(default="", description="The task that this is a step of; empty for a task of its own")


class WorkspaceState(BaseModel):
    """What is stored of a workspace; the files' text is read again."""

    model_config = ConfigDict(frozen=True)

    objective: str = ""
    open_files: tuple[str, ...] = Field(default=(), max_length=MAX_FILES)
    notes: tuple[str, ...] = Field(default=(), max_length=MAX_NOTES)
    tasks: tuple[WorkspaceTask, ...] = Field(default=(), max_length=MAX_TASKS)
    """Every step stands behind its task."""

    def open_tasks(self) -> tuple[str, ...]:
        """What is left to do, in order; a task comes after its steps."""
        left = [task for task in self.tasks if not task.done]
        waiting = {task.step_of for task in left}
        return tuple(task.text for task in left if task.text not in waiting)

    def render_long_term(self) -> str:
        """All of the long-term level."""
        shown = [f"{'  ' if task.step_of else ''}[{'x' if task.done else ' '}] {task.text}" for task in self.tasks]
        sections = (
            f"Objective: {self.objective}" if self.objective else "",
            _render_list("Tasks", shown),
            _render_list("Notes", [f"- {note}" for note in self.notes]),
        )
        return "\n".join(section for section in sections if section)


class WorkspaceChange(BaseModel):
    """The arguments of `update_workspace`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    objective: _Line | None = None
    open_files: tuple[_Path, ...] = ()
    close_files: tuple[str, ...] = ()
    add_notes: tuple[_Line, ...] = ()
    remove_notes: tuple[str, ...] = ()
    add_tasks: tuple[_Line, ...] = ()
    steps_of: str = ""
    done_tasks: tuple[str, ...] = ()
    remove_tasks: tuple[str, ...] = ()


def apply_change(state: WorkspaceState, wanted: WorkspaceChange) -> WorkspaceState:
    """The state after a change; raises InvalidArguments for unknown tasks and where there is no room. What is removed
    and added in one change stays, so that a change is idempotent."""
    files = [path for path in dict.fromkeys([*state.open_files, *wanted.open_files]) if path not in wanted.close_files]
    notes = [note for note in state.notes if note not in wanted.remove_notes or note in wanted.add_notes]
    notes += [note for note in wanted.add_notes if note not in notes]
    tasks = _change_tasks(state.tasks, wanted)
    for name, many, most in (("files", files, MAX_FILES), ("notes", notes, MAX_NOTES), ("tasks", tasks, MAX_TASKS)):
        if len(many) > most:
            raise InvalidArguments(f"A workspace has room for {most} {name}.", hint="Take away what is done.")
    objective = state.objective if wanted.objective is None else wanted.objective
    made = WorkspaceState(objective=objective, open_files=tuple(files), notes=tuple(notes), tasks=tuple(tasks))
    size = count_tokens(made.render_long_term())
    if size > max(LONG_TERM_TOKENS, count_tokens(state.render_long_term())):
        raise InvalidArguments(
            f"The objective, tasks and notes have room for {LONG_TERM_TOKENS} tokens and would take {size}.",
            hint="Remove what is done, or say it in fewer words.",
        )
    return made


def _change_tasks(before: Sequence[WorkspaceTask], wanted: WorkspaceChange) -> list[WorkspaceTask]:
    """The tasks after a change. A removed task goes with its steps; a task that is done is done with all of them."""
    gone = set(wanted.remove_tasks) - set(wanted.add_tasks)
    tasks = [task for task in before if not {task.text, task.step_of} & gone]
    known = {task.text: task for task in tasks}
    fresh = [text for text in dict.fromkeys(wanted.add_tasks) if text not in known]
    missing = [text for text in wanted.done_tasks if text not in {*known, *fresh, *wanted.remove_tasks}]
    parent = known.get(wanted.steps_of)
    if wanted.steps_of and parent is None:
        missing.append(wanted.steps_of)
    if missing:
        raise InvalidArguments(f"There is no task {missing[0]!r}.", hint="Name a task by its exact text.")
    if parent is not None and (parent.step_of or (parent.done and fresh)):
        raise InvalidArguments(f"{parent.text!r} takes no steps.", hint="Name a task that is not done and not a step.")
    family = [n for n, task in enumerate(tasks, 1) if parent and parent.text in (task.text, task.step_of)]
    end = max(family, default=len(tasks))
    tasks[end:end] = [WorkspaceTask(text=text, step_of=wanted.steps_of) for text in fresh]
    done = {task.text for task in tasks if task.done} | set(wanted.done_tasks)
    return [task.model_copy(update={"done": bool({task.text, task.step_of} & done)}) for task in tasks]


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
        if self.state == WorkspaceState():
            return ""
        lasting = truncate_to_tokens(self.state.render_long_term(), MAX_TOKENS)
        room = MAX_TOKENS - count_tokens(lasting)
        passing = truncate_to_tokens(self._render_short_term(), room)
        files = self._render_files(room - count_tokens(passing))
        # What is cut where a limit is passed stands at the end.
        return "\n".join(part for part in (lasting, files, passing) if part)

    def _render_short_term(self) -> str:
        """What is next, and what was seen last."""
        following = self.state.open_tasks()[:1]
        sections = (*(f"Next: {text}" for text in following), _render_list("Seen last", [f"- {x}" for x in self._seen]))
        return "\n".join(section for section in sections if section)

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
        "objective": {"type": "string", "description": "What all of it is for, in a sentence"},
        "add_tasks": _text_array("Tasks of the objective, in order"),
        "steps_of": {"type": "string", "description": "Make add_tasks the steps of this task, by its exact text"},
        "done_tasks": _text_array("Tasks and steps that are done, by their exact text"),
        "remove_tasks": _text_array("Tasks and steps to drop, by their exact text"),
    },
    "additionalProperties": False,
}

SPEC: Final = ToolSpec(
    name=NAME,
    server=LOCAL_SERVER,
    original_name=NAME,
    description="Change your workspace: the files you have open, your notes and your plan. You see it in <workspace> "
    "with every step, always up to date, so there is no need to read an open file again. Begin long work with its "
    "objective and tasks, split a large task into steps when you come to it, mark what is done, and note what you "
    "found: earlier messages may be cut, the workspace is not.",
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
        left = sum(not task.done for task in state.tasks)
        text = (
            f"{len(state.open_files)} files open, {len(state.notes)} notes, {left} of {len(state.tasks)} tasks to do."
        )
        # Contains no foreign text.
        return ToolResult(text=text, trust="trusted")
