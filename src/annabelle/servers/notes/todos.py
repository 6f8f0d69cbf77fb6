"""Tools for to-do lists."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import Conflict, InvalidArguments, NotFound, TooLarge
from annabelle.core.messages import now
from annabelle.core.result_text import for_model, read_on
from annabelle.language.spoken_dates import SpokenDay
from annabelle.servers.kit import Result, tool
from annabelle.servers.kit.pagination import get_page
from annabelle.servers.notes.markdown import Priority, Todo, TodoList, make_list, parse_list
from annabelle.servers.notes.notes_folder import LISTS, LockedNotes, MarkdownFile, NotesFolder


class ListLine(Result):
    name: str
    path: str
    open: int
    done: int


class TodoLists(Result):
    """The to-do lists there are."""

    lists: list[ListLine]

    def to_text(self) -> str:
        lines = [f"{one.name}: {one.open} open, {one.done} done ({one.path})" for one in self.lists]
        return "\n".join(lines) or "There are no lists."


class ListSaved(Result):
    """What became of a list."""

    name: str
    path: str
    message: str
    trash: str | None = None

    def to_text(self) -> str:
        return self.message


class TodoLine(Result):
    """One item."""

    id: str
    list: str
    text: str
    done: bool
    due: str | None = None
    priority: Priority = "normal"
    overdue: bool = False

    def to_text(self) -> str:
        return self.describe() + self.names()

    def names(self) -> str:
        return for_model(f"  {{{self.id}, {self.list}}}")

    def describe(self) -> str:
        facts = [f"due {self.due}" if self.due else "", "overdue" if self.overdue else ""]
        facts.append(self.priority if self.priority != "normal" else "")
        said = ", ".join(filter(None, facts))
        return f"[{'x' if self.done else ' '}] {self.text}{f' ({said})' if said else ''}"


class TodoItems(Result):
    """Items, in the order of their lists."""

    todos: list[TodoLine]
    total: int
    next_page: str | None = None

    def to_text(self) -> str:
        several = len({todo.list for todo in self.todos}) > 1
        lines = [todo.to_text() + for_model("", f" – {todo.list}" if several else "") for todo in self.todos]
        lines = lines or ["Nothing."]
        return "\n".join([*lines, *([read_on(f"[more: page_token {self.next_page}]")] if self.next_page else [])])


class TodoSaved(Result):
    """What became of an item."""

    todo: TodoLine
    message: str
    backup: str | None = Field(default=None, description="Where the list as it was is kept for some days")

    def to_text(self) -> str:
        return f"{self.message}{self.todo.names()}"


@dataclass(frozen=True, slots=True)
class FoundList:
    list: TodoList
    file: MarkdownFile

    def to_line(self, item: Todo) -> TodoLine:
        overdue = not item.done and item.due is not None and item.due < now().date().isoformat()
        return TodoLine(
            id=item.id, list=self.list.name, text=item.text, done=item.done, due=item.due, priority=item.priority,
            overdue=overdue,
        )  # fmt: skip


def read_all_lists(hand: LockedNotes) -> list[FoundList]:
    return [FoundList(parse_list(paper), paper) for paper in hand.read_files(LISTS)]


def find_named_list(lists: list[FoundList], name: str) -> FoundList | None:
    wanted = name.strip().casefold()
    return next((one for one in lists if wanted in (one.list.name.casefold(), one.file.path.casefold())), None)


def find_list(hand: LockedNotes, name: str) -> FoundList:
    lists = read_all_lists(hand)
    found = find_named_list(lists, name)
    if found is None:
        known = ", ".join(one.list.name for one in lists[:20])
        hint = f"There are {known}." if known else "There are no lists yet; create_list makes one."
        raise NotFound(f"There is no list {name[:80]!r}.", hint=hint, field="list")
    return found


def find_todo(hand: LockedNotes, which: str) -> tuple[FoundList, Todo]:
    wanted = which.strip()
    items = [(one, item) for one in read_all_lists(hand) for item in one.list.items]
    found = [pair for pair in items if pair[1].id == wanted]
    # Matching by text, prefer open items.
    found = found or [pair for pair in items if pair[1].text.casefold() == wanted.casefold() and not pair[1].done]
    found = found or [pair for pair in items if pair[1].text.casefold() == wanted.casefold()]
    if len(found) > 1:
        names = "; ".join(f"{item.id} on {one.list.name}" for one, item in found[:5])
        raise Conflict(f"Several items say {wanted[:80]!r}.", hint=f"Name one by id: {names}.", field="todo")
    if not found:
        raise NotFound(f"There is no item {wanted[:80]!r}.", hint="list_todos shows them with their ids.", field="todo")
    return found[0]


DEFAULT_LIST = "To-do"
_MAX_ITEMS = 2000

ListName = Annotated[str, Field(min_length=1, max_length=100, description="Name of the list")]
TodoId = Annotated[str, Field(min_length=1, max_length=300, description="The item: its id, or its exact text")]
TodoText = Annotated[str, Field(min_length=1, max_length=500, description="What is to be done")]
Due = Annotated[SpokenDay | None, Field(description="Day it is due, as in 2026-03-15 or tomorrow")]


class TodoTools:
    def __init__(self, folder: NotesFolder) -> None:
        self._folder = folder

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def create_list(self, name: ListName) -> ListSaved:
        """Make a to-do list: a Markdown checklist in Notes/Lists/ of the workspace. One that is there stays."""

        def create(hand: LockedNotes) -> ListSaved:
            called = _clean_list_name(name)
            there = find_named_list(read_all_lists(hand), called)
            if there is not None:
                message = f"The list {there.list.name} is there already."
                return ListSaved(name=there.list.name, path=there.file.path, message=message)
            path = hand.add(LISTS, called, make_list(called).to_markdown())
            return ListSaved(name=called, path=path, message=f"The list {called} is in {path}.")

        return await self._folder.run_locked(name, create)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_lists(self) -> TodoLists:
        """List the to-do lists, with how much of each is open."""
        held = await self._folder.run_locked("Notes/Lists", read_all_lists)
        lines = [
            ListLine(
                name=one.list.name,
                path=one.file.path,
                open=sum(not item.done for item in one.list.items),
                done=sum(item.done for item in one.list.items),
            )
            for one in sorted(held, key=lambda one: one.list.name.casefold())
        ]
        return TodoLists(lists=lines[:200])

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def delete_list(self, list: ListName) -> ListSaved:
        """Delete a to-do list with all its items. Its file is kept in temp/trash for some days."""

        def delete(hand: LockedNotes) -> ListSaved:
            held = find_list(hand, list)
            trash = hand.discard(held.file)
            message = f"The list {held.list.name} is deleted. To undo, move {trash} back to {held.file.path}."
            return ListSaved(name=held.list.name, path=held.file.path, message=message, trash=trash)

        return await self._folder.run_locked(list, delete)

    @tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    async def add_todo(
        self,
        text: TodoText,
        list: Annotated[ListName, Field(description="Name of the list; it is made if it is not there")] = DEFAULT_LIST,
        due: Due = None,
        priority: Annotated[Priority, Field(description="How urgent it is")] = "normal",
    ) -> TodoSaved:
        """Put an item on a to-do list."""
        said = _clean_text(text)

        def add(hand: LockedNotes) -> TodoSaved:
            called = _clean_list_name(list)
            held = find_named_list(read_all_lists(hand), called)
            item = Todo(f"t-{secrets.token_hex(5)}", said, due=due.isoformat() if due else None, priority=priority)
            if held is None:
                made = make_list(called).add(item)
                path = hand.add(LISTS, called, made.to_markdown())
                held = FoundList(made, MarkdownFile(path, path, "", now()))
            elif len(held.list.items) >= _MAX_ITEMS:
                raise TooLarge(f"{held.list.name} has {_MAX_ITEMS} items already.", hint="Delete some, or use another.")
            else:
                hand.replace(held.file, held.list.add(item).to_markdown())
            line = held.to_line(item)
            return TodoSaved(todo=line, message=f"Added to {held.list.name}: {line.describe()}")

        return await self._folder.run_locked(list, add)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_todos(
        self,
        list: Annotated[ListName | None, Field(description="Only this list; all of them if left out")] = None,
        status: Annotated[Literal["open", "done", "all"], Field(description="Which items")] = "open",
        due_before: Annotated[SpokenDay | None, Field(description="Only items due on or before this day")] = None,
        limit: Annotated[int, Field(ge=1, le=200, description="How many per page")] = 100,
        page_token: Annotated[str | None, Field(max_length=40, description="From the page before")] = None,
    ) -> TodoItems:
        """List the items of to-do lists, what is due first."""
        held = await self._folder.run_locked(
            list or "Notes/Lists", lambda hand: read_all_lists(hand) if list is None else [find_list(hand, list)]
        )
        last = due_before.isoformat() if due_before else None
        lines = [
            one.to_line(item)
            for one in sorted(held, key=lambda one: one.list.name.casefold())
            for item in one.list.items
            if (status == "all" or item.done == (status == "done"))
            and (last is None or (item.due is not None and item.due <= last))
        ]
        lines.sort(key=lambda line: (line.done, line.due or "9999"))
        page = get_page(lines, page_token, limit)
        return TodoItems(todos=page.items, total=len(lines), next_page=page.next_page)

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def update_todo(
        self,
        todo: TodoId,
        text: Annotated[TodoText | None, Field(description="New text")] = None,
        due: Annotated[
            SpokenDay | Literal["none"] | None, Field(description='New day it is due; "none" takes it away')
        ] = None,
        priority: Annotated[Priority | None, Field(description="New priority")] = None,
    ) -> TodoSaved:
        """Change the text, the day or the priority of an item."""
        if text is None and due is None and priority is None:
            raise InvalidArguments("Nothing is to be changed.", hint="Give text, due or priority.", field="text")

        def change(item: Todo) -> Todo:
            day = item.due if due is None else due.isoformat() if isinstance(due, date) else None
            said = item.text if text is None else _clean_text(text)
            return replace(item, text=said, due=day, priority=priority or item.priority)

        return await self._change_todo(todo, change, "Changed")

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def complete_todo(
        self,
        todo: TodoId,
        done: Annotated[bool, Field(description="false opens it again")] = True,
    ) -> TodoSaved:
        """Tick an item off, or open it again."""

        def change(item: Todo) -> Todo:
            if item.done == done:
                return item
            return replace(item, done=done, finished=now().date().isoformat() if done else None)

        return await self._change_todo(todo, change, "Done" if done else "Open again")

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def delete_todo(self, todo: TodoId) -> TodoSaved:
        """Take an item off its list. The list as it was is kept in temp/backups for some days."""

        def delete(hand: LockedNotes) -> TodoSaved:
            held, item = find_todo(hand, todo)
            backup = hand.replace(held.file, held.list.remove(item).to_markdown())
            message = f"Deleted {item.text!r} from {held.list.name}. The list as it was is kept as {backup}."
            return TodoSaved(todo=held.to_line(item), message=message, backup=backup)

        return await self._folder.run_locked(todo, delete)

    async def _change_todo(self, todo: str, change: Callable[[Todo], Todo], verb: str) -> TodoSaved:
        def apply_change(hand: LockedNotes) -> TodoSaved:
            held, item = find_todo(hand, todo)
            new = change(item)
            backup = None if new == item else hand.replace(held.file, held.list.change(new).to_markdown())
            line = held.to_line(new)
            return TodoSaved(todo=line, message=f"{verb}: {line.describe()}", backup=backup)

        return await self._folder.run_locked(todo, apply_change)


def _clean_text(text: str) -> str:
    said = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if not said:
        raise InvalidArguments("The text is empty.", field="text")
    return said


def _clean_list_name(text: str) -> str:
    name = _clean_text(text).lstrip("#").strip()
    if not name:
        raise InvalidArguments("The list needs a name.", field="list")
    return name
