"""`annabelle approvals`: lists and answers approval questions (POL-03)."""

from __future__ import annotations

import sys
from typing import Annotated, cast

import typer

from annabelle.cli.approval_prompt import (
    WAITING_EXIT,
    ApprovalQuestion,
    fetch_questions,
    find_question,
    format_time,
    print_task_outcome,
    read_arguments,
    submit_answer,
    to_editable_json,
)
from annabelle.cli.conversation import find_approvals, find_failure
from annabelle.cli.hub_client import CliHubClient, ask_hub
from annabelle.cli.hub_process import temporary_hub
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import print_json, print_line, print_paragraph, print_rows
from annabelle.cli.spinner import Spinner
from annabelle.cli.terminal_input import edit_text
from annabelle.core.errors import CallerMistake, error_from
from annabelle.core.home import Home
from annabelle.core.text import escape_invisible
from annabelle.core.tools import JsonObject

Id = Annotated[str, typer.Argument(help="Id of the question, or a beginning or end of it that fits no other.")]
All = Annotated[bool, typer.Option("--all", help="Those that were answered or are over, too.")]
Note = Annotated[str, typer.Option("--note", help="A word to Annabelle about your answer.")]
NoWait = Annotated[bool, typer.Option("--no-wait", help="Do not wait for what Annabelle says then.")]

app = command_app("See and answer what Annabelle asks before it does something.")


@app.callback(invoke_without_command=True)
def approvals(context: typer.Context, all_of_them: All = False, json: Json = False) -> None:
    """See and answer what Annabelle asks before it does something. Without a command: what waits for you."""
    if context.invoked_subcommand is None:
        list_questions(all_of_them=all_of_them, json=json)


@app.command("list")
def list_questions(all_of_them: All = False, json: Json = False) -> None:
    """List what waits for your answer, newest first."""
    listed = ask_hub(lambda client: fetch_questions(client, None if all_of_them else "pending"))
    data, rows = {"approvals": [_to_json(one) for one in listed]}, [_row(one) for one in listed]
    empty = "No question was asked yet." if all_of_them else "No question waits for you."
    print_rows(data, ("QUESTION", "STATE", "UNTIL", "TOOL", "ARGUMENTS"), rows, empty, json=json)


@app.command()
def show(question_id: Id, json: Json = False) -> None:
    """Show a question whole: the exact call, why it is asked, and what became of it."""
    shown = ask_hub(lambda client: find_question(client, question_id))
    if json:
        print_json(_to_json(shown))
        return
    for line in shown.call_lines(whole=True):
        print_line(line)
    print_paragraph(f"Why: {shown.why}")
    print_line(f"Id: {shown.id}")
    print_line(f"Asked: {format_time(shown.created_at)} by {escape_invisible(shown.agent_id)}")
    if shown.is_pending:
        print_line(f"Waits until: {format_time(shown.expires_at)}")
        if shown.always is not None:
            print_paragraph(f"Always would mean: {escape_invisible(shown.always.words)}")
        print_line(f"Answer with: annabelle approvals approve {shown.id} (or deny)")
        return
    decided = f", {format_time(shown.decided_at)}" if shown.decided_at is not None else ""
    print_line(f"State: {shown.outcome}{decided}")
    if shown.edited is not None:
        for line in shown.model_copy(update={"arguments": shown.edited, "tool": "Changed to:"}).call_lines(whole=True):
            print_line(line)
    if shown.note:
        print_paragraph(f"Your note: {escape_invisible(shown.note)}")


@app.command()
def approve(
    question_id: Id,
    edit: Annotated[bool, typer.Option("--edit", help="Change the arguments in your editor first.")] = False,
    arguments: Annotated[
        str | None, typer.Option("--arguments", help="One JSON object: make the call with these arguments instead.")
    ] = None,
    always: Annotated[
        bool, typer.Option("--always", help="Make the narrow rule that `show` names, so that it is not asked again.")
    ] = False,
    note: Note = "",
    no_wait: NoWait = False,
    json: Json = False,
) -> None:
    """Say yes: exactly this call is made, once. Then waits for what Annabelle says about it.

    Starts Annabelle for the time of it when it does not run.
    """
    if edit and (arguments is not None or json):
        raise CallerMistake("--edit goes neither with --arguments nor with --json.")
    if always and (edit or arguments is not None):
        raise CallerMistake("--always is for the call as it was asked, and does not go with changed arguments.")
    with temporary_hub(Home.from_environment()):
        asked = ask_hub(lambda client: find_question(client, question_id))
        if always and not json:
            _confirm(asked)
        answer: JsonObject = {"verdict": "approve", "note": note, "always": always}
        if arguments is not None:
            answer["arguments"] = read_arguments(arguments)
        elif edit:
            answer["arguments"] = read_arguments(edit_text(to_editable_json(asked.arguments), ".json"))
        _answer(asked, answer, wait=not no_wait, json=json)


@app.command()
def deny(question_id: Id, note: Note = "", no_wait: NoWait = False, json: Json = False) -> None:
    """Say no: the call is not made, and Annabelle is told so. Then waits for what it says about it.

    Starts Annabelle for the time of it when it does not run.
    """
    with temporary_hub(Home.from_environment()):
        asked = ask_hub(lambda client: find_question(client, question_id))
        _answer(asked, {"verdict": "deny", "note": note}, wait=not no_wait, json=json)


def _confirm(asked: ApprovalQuestion) -> None:
    """Show the rule before it is made. If none is offered, the hub refuses."""
    if asked.always is None:
        return
    print_paragraph(f"Always means: {escape_invisible(asked.always.words)}")
    if sys.stdin.isatty() and not typer.confirm("Make this rule?", err=True):
        sys.stderr.write("Nothing was answered.\n")
        raise typer.Abort


def _answer(asked: ApprovalQuestion, answer: JsonObject, *, wait: bool, json: bool) -> None:
    said = ask_hub(lambda client: submit_answer(client, asked.id, answer))
    going_on = said.get("messageId")
    if not json:
        print_line(f"{'Denied' if answer['verdict'] == 'deny' else 'Approved'}: {escape_invisible(asked.tool)}.")
        if said.get("ruleId") is not None:
            print_line("The rule is made: annabelle rules lists it.")
    if going_on is None:
        if json:
            print_json(said)
        elif not print_task_outcome(said, answer):
            print_line("Annabelle goes on when its other questions are answered: annabelle approvals")
        return
    replies = ask_hub(lambda client: _wait_for_replies(client, str(going_on))) if wait else []
    if json:
        print_json({**said, "answer": _join_texts(replies)} if wait else said)
    elif wait:
        print_line(_join_texts(replies))
    if any(find_approvals(reply) for reply in replies):
        raise typer.Exit(WAITING_EXIT)


def _join_texts(replies: list[JsonObject]) -> str:
    return "\n".join(str(reply["text"]) for reply in replies)


async def _wait_for_replies(client: CliHubClient, message_id: str) -> list[JsonObject]:
    """All replies of the continued turn; raises if it failed."""
    with Spinner("Annabelle goes on"):
        message = await client.wait_for_message(message_id)
    if (failure := find_failure(message)) is not None:
        raise error_from(failure)
    return cast("list[JsonObject]", message.get("replies") or [])


def _row(one: ApprovalQuestion) -> tuple[str, ...]:
    return (
        one.id,
        one.outcome,
        format_time(one.expires_at) if one.is_pending else "-",
        escape_invisible(one.tool),
        one.summary,
    )


def _to_json(one: ApprovalQuestion) -> JsonObject:
    return one.model_dump(mode="json", by_alias=True)
