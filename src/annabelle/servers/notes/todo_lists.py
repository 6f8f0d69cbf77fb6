"""The to-do lists there are, and finding the one, or the item, that somebody means."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.errors import Conflict, NotFound
from annabelle.core.messages import now
from annabelle.servers.notes.list_file import Todo, TodoList, read_list
from annabelle.servers.notes.shelf import LISTS, Hand, Paper
from annabelle.servers.notes.todo_results import TodoLine


@dataclass(frozen=True, slots=True)
class Held:
    """A list and the file it is in."""

    list: TodoList
    paper: Paper

    def line(self, item: Todo) -> TodoLine:
        overdue = not item.done and item.due is not None and item.due < now().date().isoformat()
        return TodoLine(
            id=item.id, list=self.list.name, text=item.text, done=item.done, due=item.due, priority=item.priority,
            overdue=overdue,
        )  # fmt: skip


def every_list(hand: Hand) -> list[Held]:
    return [Held(read_list(paper), paper) for paper in hand.papers(LISTS)]


def named(lists: list[Held], name: str) -> Held | None:
    wanted = name.strip().casefold()
    return next((one for one in lists if wanted in (one.list.name.casefold(), one.paper.path.casefold())), None)


def find_list(hand: Hand, name: str) -> Held:
    lists = every_list(hand)
    found = named(lists, name)
    if found is None:
        known = ", ".join(one.list.name for one in lists[:20])
        hint = f"There are {known}." if known else "There are no lists yet; create_list makes one."
        raise NotFound(f"There is no list {name[:80]!r}.", hint=hint, field="list")
    return found


def find_todo(hand: Hand, which: str) -> tuple[Held, Todo]:
    wanted = which.strip()
    items = [(one, item) for one in every_list(hand) for item in one.list.items]
    found = [pair for pair in items if pair[1].id == wanted]
    # By its words, what is still open is meant before what is done.
    found = found or [pair for pair in items if pair[1].text.casefold() == wanted.casefold() and not pair[1].done]
    found = found or [pair for pair in items if pair[1].text.casefold() == wanted.casefold()]
    if len(found) > 1:
        names = "; ".join(f"{item.id} on {one.list.name}" for one, item in found[:5])
        raise Conflict(f"Several items say {wanted[:80]!r}.", hint=f"Name one by id: {names}.", field="todo")
    if not found:
        raise NotFound(f"There is no item {wanted[:80]!r}.", hint="list_todos shows them with their ids.", field="todo")
    return found[0]
