"""What the tools for to-do lists give back."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from annabelle.servers.kit import Result
from annabelle.servers.notes.list_file import Priority


class ListLine(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    path: str
    open: int
    done: int


class Lists(Result):
    """The to-do lists there are."""

    lists: list[ListLine]

    def text(self) -> str:
        lines = [f"{one.name}: {one.open} open, {one.done} done ({one.path})" for one in self.lists]
        return "\n".join(lines) or "There are no lists."


class ListKept(Result):
    """What became of a list."""

    name: str
    path: str
    message: str
    trash: str | None = None

    def text(self) -> str:
        return self.message


class TodoLine(BaseModel):
    """One item."""

    model_config = ConfigDict(frozen=True)

    id: str
    list: str
    text: str
    done: bool
    due: str | None = None
    priority: Priority = "normal"
    overdue: bool = False

    def line(self) -> str:
        facts = [f"due {self.due}" if self.due else "", "overdue" if self.overdue else ""]
        facts.append(self.priority if self.priority != "normal" else "")
        said = ", ".join(filter(None, facts))
        return f"[{'x' if self.done else ' '}] {self.text}{f' ({said})' if said else ''}  {{{self.id}, {self.list}}}"


class TodoItems(Result):
    """Items, in the order of their lists."""

    todos: list[TodoLine]
    total: int
    next_page: str | None = None

    def text(self) -> str:
        lines = [todo.line() for todo in self.todos] or ["Nothing."]
        return "\n".join([*lines, *([f"[more: page_token {self.next_page}]"] if self.next_page else [])])


class TodoKept(Result):
    """What became of an item."""

    todo: TodoLine
    message: str
    backup: str | None = Field(default=None, description="Where the list as it was is kept for some days")

    def text(self) -> str:
        return self.message
