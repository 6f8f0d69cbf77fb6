"""Tools for to-do lists."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import InvalidArguments, TooLarge
from annabelle.core.messages import now
from annabelle.servers.kit import tool
from annabelle.servers.kit.paging import page_of
from annabelle.servers.notes.list_file import Priority, Todo, new_list
from annabelle.servers.notes.shelf import LISTS, Hand, Paper, Shelf
from annabelle.servers.notes.todo_lists import Held, every_list, find_list, find_todo, named
from annabelle.servers.notes.todo_results import ListKept, ListLine, Lists, TodoItems, TodoKept

DEFAULT_LIST = "To-do"
_MAX_ITEMS = 2000

ListName = Annotated[str, Field(min_length=1, max_length=100, description="Name of the list")]
TodoId = Annotated[str, Field(min_length=1, max_length=300, description="The item: its id, or its exact text")]
Words = Annotated[str, Field(min_length=1, max_length=500, description="What is to be done")]
Due = Annotated[date | None, Field(description="Day it is due, as in 2026-03-15")]


class Todos:
    """create_list, list_lists, delete_list, add_todo, list_todos, update_todo, complete_todo and delete_todo."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def create_list(self, name: ListName) -> ListKept:
        """Make a to-do list: a Markdown checklist in Notes/Lists/ of the workspace. One that is there stays."""

        def work(hand: Hand) -> ListKept:
            called = _name(name)
            there = named(every_list(hand), called)
            if there is not None:
                message = f"The list {there.list.name} is there already."
                return ListKept(name=there.list.name, path=there.paper.path, message=message)
            path = hand.add(LISTS, called, new_list(called).write())
            return ListKept(name=called, path=path, message=f"The list {called} is in {path}.")

        return await self._shelf.perform(name, work)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_lists(self) -> Lists:
        """List the to-do lists, with how much of each is open."""
        held = await self._shelf.perform("Notes/Lists", every_list)
        lines = [
            ListLine(
                name=one.list.name,
                path=one.paper.path,
                open=sum(not item.done for item in one.list.items),
                done=sum(item.done for item in one.list.items),
            )
            for one in sorted(held, key=lambda one: one.list.name.casefold())
        ]
        return Lists(lists=lines[:200])

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def delete_list(self, list: ListName) -> ListKept:
        """Delete a to-do list with all its items. Its file is kept in temp/trash for some days."""

        def work(hand: Hand) -> ListKept:
            held = find_list(hand, list)
            trash = hand.discard(held.paper)
            message = f"The list {held.list.name} is deleted. To undo, move {trash} back to {held.paper.path}."
            return ListKept(name=held.list.name, path=held.paper.path, message=message, trash=trash)

        return await self._shelf.perform(list, work)

    @tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    async def add_todo(
        self,
        text: Words,
        list: Annotated[ListName, Field(description="Name of the list; it is made if it is not there")] = DEFAULT_LIST,
        due: Due = None,
        priority: Annotated[Priority, Field(description="How urgent it is")] = "normal",
    ) -> TodoKept:
        """Put an item on a to-do list."""
        said = _words(text)

        def work(hand: Hand) -> TodoKept:
            called = _name(list)
            held = named(every_list(hand), called)
            item = Todo(f"t-{secrets.token_hex(5)}", said, due=due.isoformat() if due else None, priority=priority)
            if held is None:
                made = new_list(called).add(item)
                path = hand.add(LISTS, called, made.write())
                held = Held(made, Paper(path, path, "", now()))
            elif len(held.list.items) >= _MAX_ITEMS:
                raise TooLarge(f"{held.list.name} has {_MAX_ITEMS} items already.", hint="Delete some, or use another.")
            else:
                hand.replace(held.paper, held.list.add(item).write())
            line = held.line(item)
            return TodoKept(todo=line, message=f"Added to {held.list.name}: {line.line()}")

        return await self._shelf.perform(list, work)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_todos(
        self,
        list: Annotated[ListName | None, Field(description="Only this list; all of them if left out")] = None,
        status: Annotated[Literal["open", "done", "all"], Field(description="Which items")] = "open",
        due_before: Annotated[date | None, Field(description="Only items due on or before this day")] = None,
        limit: Annotated[int, Field(ge=1, le=200, description="How many per page")] = 100,
        page_token: Annotated[str | None, Field(max_length=40, description="From the page before")] = None,
    ) -> TodoItems:
        """List the items of to-do lists, what is due first."""
        held = await self._shelf.perform(
            list or "Notes/Lists", lambda hand: every_list(hand) if list is None else [find_list(hand, list)]
        )
        last = due_before.isoformat() if due_before else None
        lines = [
            one.line(item)
            for one in sorted(held, key=lambda one: one.list.name.casefold())
            for item in one.list.items
            if (status == "all" or item.done == (status == "done"))
            and (last is None or (item.due is not None and item.due <= last))
        ]
        lines.sort(key=lambda line: (line.done, line.due or "9999"))
        page = page_of(lines, page_token, limit)
        return TodoItems(todos=page.items, total=len(lines), next_page=page.next_page)

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def update_todo(
        self,
        todo: TodoId,
        text: Annotated[Words | None, Field(description="New text")] = None,
        due: Annotated[
            date | Literal["none"] | None, Field(description='New day it is due; "none" takes it away')
        ] = None,
        priority: Annotated[Priority | None, Field(description="New priority")] = None,
    ) -> TodoKept:
        """Change the text, the day or the priority of an item."""
        if text is None and due is None and priority is None:
            raise InvalidArguments("Nothing is to be changed.", hint="Give text, due or priority.", field="text")

        def change(item: Todo) -> Todo:
            day = item.due if due is None else due.isoformat() if isinstance(due, date) else None
            said = item.text if text is None else _words(text)
            return replace(item, text=said, due=day, priority=priority or item.priority)

        return await self._change(todo, change, "Changed")

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def complete_todo(
        self,
        todo: TodoId,
        done: Annotated[bool, Field(description="false opens it again")] = True,
    ) -> TodoKept:
        """Tick an item off, or open it again."""

        def change(item: Todo) -> Todo:
            if item.done == done:
                return item
            return replace(item, done=done, finished=now().date().isoformat() if done else None)

        return await self._change(todo, change, "Done" if done else "Open again")

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def delete_todo(self, todo: TodoId) -> TodoKept:
        """Take an item off its list. The list as it was is kept in temp/backups for some days."""

        def work(hand: Hand) -> TodoKept:
            held, item = find_todo(hand, todo)
            backup = hand.replace(held.paper, held.list.remove(item).write())
            message = f"Deleted {item.text!r} from {held.list.name}. The list as it was is kept as {backup}."
            return TodoKept(todo=held.line(item), message=message, backup=backup)

        return await self._shelf.perform(todo, work)

    async def _change(self, todo: str, change: Callable[[Todo], Todo], verb: str) -> TodoKept:
        def work(hand: Hand) -> TodoKept:
            held, item = find_todo(hand, todo)
            new = change(item)
            backup = None if new == item else hand.replace(held.paper, held.list.change(new).write())
            line = held.line(new)
            return TodoKept(todo=line, message=f"{verb}: {line.line()}", backup=backup)

        return await self._shelf.perform(todo, work)


def _words(text: str) -> str:
    said = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    if not said:
        raise InvalidArguments("The text is empty.", field="text")
    return said


def _name(text: str) -> str:
    name = _words(text).lstrip("#").strip()
    if not name:
        raise InvalidArguments("The list needs a name.", field="list")
    return name
