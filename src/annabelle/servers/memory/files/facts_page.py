"""The page of facts: one line each, below its category. An edited line is a correction, a new one a new fact."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from pydantic import ValidationError

from annabelle.core.memory import FactCategory
from annabelle.servers.memory.files.checking import problem_of
from annabelle.servers.memory.files.marks import Mark, bad_line, check_of, escaped, take_mark, unescaped
from annabelle.servers.memory.files.outline import END, Item, Page, bullet, head
from annabelle.servers.memory.files.rows import FactLine, Listing

if TYPE_CHECKING:
    from annabelle.store.memory.facts import Fact

KIND = "facts"
CATEGORIES: tuple[FactCategory, ...] = get_args(FactCategory)

_INTRO = """# Facts

What is remembered, by category. Correct a line, add one (`- …`) or move it to another category, then import this file
again. Leave the comment at a line's end as it is: it says which fact the line is. A line that is gone is retired only
when the import is told to prune. An untrusted fact was learnt from content that others wrote.
"""


def fact_check(fact: str, category: str) -> str:
    return check_of(fact, category)


def write_facts(through: int, at: datetime, digest: str, groups: Iterable[tuple[str, Iterable[Fact]]]) -> Iterator[str]:
    """The page, piece by piece."""
    yield f"{_INTRO}\n{head(KIND, through=through, at=at.isoformat(), digest=digest)}\n"
    for category, facts in groups:
        yield f"\n## {category}\n\n"
        for fact in facts:
            mark = Mark(fact.id, fact.trust, fact_check(fact.fact, fact.category))
            yield f"{bullet(f'{escaped(fact.fact)} {mark}')}\n"
    yield f"\n{END.format(what=KIND)}\n"


def read_facts(page: Page) -> Iterator[tuple[int, FactLine | Listing]]:
    """The lines of a page with their line numbers, and what it says of itself."""
    lines: list[tuple[int, FactLine]] = []
    for section in page.sections:
        category = section.title.strip().lower()
        if category not in CATEGORIES:
            known = ", ".join(CATEGORIES)
            raise bad_line(section.line, f"there is no category {section.title[:60]!r}", f"There are {known}.")
        lines += [(item.line, _line(item, category)) for item in section.items if item.text or item.children]
    unchanged = {line.id for _, line in lines if line.id and line.check == fact_check(line.fact, line.category)}
    taken: set[int] = set()
    ids: list[int] = []
    for number, line in lines:
        same = line.check == fact_check(line.fact, line.category)
        if line.id is not None and (line.id in taken or (line.id in unchanged and not same)):
            # A line that was copied and then changed is another fact.
            line = line.model_copy(update={"id": None, "check": line.check if same else None})
        if line.id is not None:
            taken.add(line.id)
            ids.append(line.id)
        yield number, line
    if page.kind == KIND:
        try:
            yield 1, Listing.model_validate({**page.facts, "ids": ids})
        except ValidationError as error:
            raise bad_line(1, f"the comment at the top is damaged ({problem_of(error)})") from error


def _line(item: Item, category: str) -> FactLine:
    if item.children:
        raise bad_line(item.children[0].line, "a fact has no bullets below it", "Begin it at the margin.")
    text, mark = take_mark(item.text, item.line)
    try:
        return FactLine.model_validate(
            {
                "fact": unescaped(text.strip()),
                "category": category,
                "id": mark.id if mark else None,
                "check": mark.check if mark else None,
                "trust": mark.trust if mark else "trusted",
            }
        )
    except ValidationError as error:
        raise bad_line(item.line, problem_of(error)) from error
