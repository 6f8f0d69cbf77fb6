"""`annabelle forget`: shows where something is stored and removes it permanently."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from annabelle.cli.hub_client import post_json
from annabelle.cli.memory.client import confirm
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_json, print_line, print_outcome, print_paragraph, print_table
from annabelle.cli.spinner import Spinner
from annabelle.core.errors import CallerMistake, NotFound
from annabelle.core.tools import JsonObject

FORGET_SECONDS = 1800.0
MANY = 100
_SHOWN_FACTS = 20

app = command_app()


class _ForgetModel(BaseModel):
    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True)


class _ForgetPlace(_ForgetModel):
    place: str
    count: int
    fate: str


class _ForgetFact(_ForgetModel):
    id: int
    fact: str
    current: bool


class _ForgetReport(_ForgetModel):
    total: int
    places: list[_ForgetPlace]
    facts: list[_ForgetFact]
    own: list[str]
    near: list[_ForgetFact]


@app.command()
def forget(
    text: Annotated[
        str | None,
        typer.Argument(help="What to forget, word for word. Left out, it is asked for, and no shell keeps it."),
    ] = None,
    fact: Annotated[
        int | None, typer.Option("--fact", help="Forget this fact, and those it took the place of.")
    ] = None,
    with_source: Annotated[
        bool, typer.Option("--with-source", help="With --fact: also forget what was said where it came from.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask; forget at once.")] = False,
    json: Json = False,
) -> None:
    """Forget something for good: facts, conversations, sessions, indexes, logs, exports and backups.

    First it shows where it stands. The text is found whatever its case and spelling. What was forgotten can not be
    brought back. Your own files in the workspace are named and left as they are.
    """
    asked = _build_request(text, fact, with_source=with_source)
    found = _request_forget(asked, preview=True)
    if not json:
        _show(found)
    if not found.places:
        if json:
            print_json(found.model_dump(by_alias=True))
        raise NotFound("It stands nowhere in these words.", hint=_what_to_type(found))
    if not yes:
        if json:
            print_json(found.model_dump(by_alias=True))
            return
        _confirm(found.total)
    with Spinner("Forgetting"):
        done = _request_forget(asked, preview=False)
    print_outcome(done.model_dump(by_alias=True), "Forgotten. It can not be brought back.", json=json)


def _build_request(text: str | None, fact: int | None, *, with_source: bool) -> JsonObject:
    if text is not None and fact is not None:
        raise CallerMistake("Give the words or --fact, not both.")
    if with_source and fact is None:
        raise CallerMistake("--with-source belongs to --fact.")
    if fact is not None:
        return {"factId": fact, "withSource": with_source}
    return {"text": text if text is not None else _read_text()}


def _read_text() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    return str(typer.prompt("What to forget", err=True))


def _request_forget(asked: JsonObject, *, preview: bool) -> _ForgetReport:
    return _ForgetReport.model_validate(post_json("/memory/forget", {**asked, "preview": preview}, FORGET_SECONDS))


def _show(found: _ForgetReport) -> None:
    if found.places:
        rows = [(place.place, str(place.count), place.fate) for place in found.places]
        print_table(("WHERE", "HOW MANY", "WILL BE"), rows)
    for fact in found.facts[:_SHOWN_FACTS]:
        print_line(f"  fact {fact.id}{'' if fact.current else ' (old)'}: {clean(fact.fact)}")
    if found.own:
        print_paragraph("These files are yours; they hold it and stay as they are:")
        for path in found.own:
            print_line(f"  {clean(path)}")
    for fact in found.near:
        print_line(f"  fact {fact.id}: {clean(fact.fact)}")


def _what_to_type(found: _ForgetReport) -> str:
    if found.near:
        return f"Something like it is above; to forget one of these: annabelle forget --fact {found.near[0].id}"
    if found.own:
        return "Only your own files hold it; change them yourself."
    return "Try fewer words, or look for it: annabelle memory search"


def _confirm(total: int) -> None:
    confirm("Forget all of this for good?")
    if total >= MANY:
        confirm(f"These are {total} places. Is that really meant?")
