"""`annabelle audit`: shows the audit records and checks that nobody changed them."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Final

import typer

from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import clean, print_json, print_paragraph, print_rows
from annabelle.core.errors import InvalidArguments, StorageTrouble
from annabelle.core.home import Home
from annabelle.core.tools import JsonObject
from annabelle.store.audit.records import AuditChainRecord, AuditPaths, AuditQuery, read_latest
from annabelle.store.audit.verification import verify_audit as verify_files

_SHOWN: Final = 10

app = command_app("See what was done and decided, and check that nobody changed the record of it.")


@app.command()
def verify(json: Json = False) -> None:
    """Check every record, from the files alone; a hub may run meanwhile. Exit code 3 names the first that is wrong."""
    verdict = verify_files(AuditPaths.from_home(Home.from_environment()))
    if json:
        print_json({"good": verdict.is_intact, **asdict(verdict)})
        if not verdict.is_intact:
            raise typer.Exit(StorageTrouble.exit_code)
        return
    if verdict.problem is not None:
        raise StorageTrouble(verdict.describe(), hint="What stands before it is whole.")
    print_paragraph(verdict.describe())
    for incident in verdict.incidents[-_SHOWN:]:
        print_paragraph(incident)
    if len(verdict.incidents) > _SHOWN:
        print_paragraph(f"{len(verdict.incidents) - _SHOWN} more such things happened before; --json tells them all.")


@run_by_default(app)
@app.command()
def show(
    last: Annotated[int, typer.Option("-n", "--last", min=1, help="How many of the newest.")] = 50,
    kind: Annotated[
        str | None, typer.Option(help="Only of this kind: tool, scan, approval, rule, config, login, stop, server …")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only from this day or moment on: 2026-11-15, or with a time.")
    ] = None,
    json: Json = False,
) -> None:
    """Show the newest records. They hold names, numbers and fingerprints, never content."""
    found = read_latest(AuditPaths.from_home(Home.from_environment()), AuditQuery(last, kind, _parse_moment(since)))
    data, rows = {"records": [asdict(record) for record in found]}, [_row(record) for record in found]
    print_rows(data, ("N", "TIME", "KIND", "FACTS"), rows, "There is no such record.", json=json)


def _parse_moment(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidArguments(
            f"{text!r} is no day or moment.", hint="Write it as 2026-11-15 or 2026-11-15T08:30.", field="since"
        ) from error


def _row(record: AuditChainRecord) -> tuple[str, str, str, str]:
    at = datetime.fromisoformat(record.at).astimezone()
    return str(record.n), f"{at:%Y-%m-%d %H:%M:%S}", clean(record.kind), clean(_facts(record.facts))


def _facts(facts: JsonObject) -> str:
    return " ".join(f"{name}={value}" for name, value in facts.items() if value is not None)
