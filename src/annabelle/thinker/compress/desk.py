"""What is on the desk of a thread: the files it has open, its notes and its tasks (CMP-01)."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import InvalidArguments

MOST_FILES: Final = 10
MOST_NOTES: Final = 50
MOST_TASKS: Final = 50

_Path = Annotated[str, Field(min_length=1, max_length=400)]
_Line = Annotated[str, Field(min_length=1, max_length=500)]


class Task(BaseModel):
    model_config = ConfigDict(frozen=True)

    text: str
    done: bool = False


class Desk(BaseModel):
    """What is kept of a workspace; the files' text is not, it is read again."""

    model_config = ConfigDict(frozen=True)

    open_files: tuple[str, ...] = Field(default=(), max_length=MOST_FILES)
    notes: tuple[str, ...] = Field(default=(), max_length=MOST_NOTES)
    tasks: tuple[Task, ...] = Field(default=(), max_length=MOST_TASKS)


class DeskChange(BaseModel):
    """The arguments of `update_workspace`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    open_files: tuple[_Path, ...] = ()
    close_files: tuple[str, ...] = ()
    add_notes: tuple[_Line, ...] = ()
    remove_notes: tuple[str, ...] = ()
    add_tasks: tuple[_Line, ...] = ()
    done_tasks: tuple[str, ...] = ()
    remove_tasks: tuple[str, ...] = ()


def changed(desk: Desk, wanted: DeskChange) -> Desk:
    """The desk after a change; InvalidArguments says what has no room or is not there. What is taken away and put
    there in one stays: so a change made twice is the same as once."""
    files = [path for path in dict.fromkeys([*desk.open_files, *wanted.open_files]) if path not in wanted.close_files]
    notes = [note for note in desk.notes if note not in wanted.remove_notes or note in wanted.add_notes]
    notes += [note for note in wanted.add_notes if note not in notes]
    known = {task.text for task in desk.tasks}
    missing = [text for text in wanted.done_tasks if text not in {*known, *wanted.add_tasks, *wanted.remove_tasks}]
    if missing:
        raise InvalidArguments(f"There is no task {missing[0]!r}.", hint="Name a task by its exact text.")
    tasks = [task for task in desk.tasks if task.text not in wanted.remove_tasks or task.text in wanted.add_tasks]
    tasks += [Task(text=text) for text in dict.fromkeys(wanted.add_tasks) if text not in known]
    tasks = [Task(text=task.text, done=task.done or task.text in wanted.done_tasks) for task in tasks]
    for name, many, most in (("files", files, MOST_FILES), ("notes", notes, MOST_NOTES), ("tasks", tasks, MOST_TASKS)):
        if len(many) > most:
            raise InvalidArguments(f"A workspace has room for {most} {name}.", hint="Take away what is done.")
    return Desk(open_files=tuple(files), notes=tuple(notes), tasks=tuple(tasks))
