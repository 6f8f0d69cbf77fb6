"""`annabelle costs`: shows spending and budgets, and resumes paused agents."""

from __future__ import annotations

from typing import Annotated, Literal, cast
from urllib.parse import quote

import typer

from annabelle.cli.hub_client import CliHubClient, ask_hub, get_json, post_json
from annabelle.cli.hub_process import running_hub
from annabelle.cli.options import Json, command_app
from annabelle.cli.output import clean, print_json, print_line, print_outcome, print_paragraph, print_table
from annabelle.core.errors import HubUnreachable
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.core.settings_file import SettingsFile, check_value, find_setting
from annabelle.core.tools import JsonObject

Grouping = Literal["day", "agent", "goal", "model", "purpose", "user"]
Usd = Annotated[str | None, typer.Option(metavar="USD", help="The most it may cost; none takes the budget away.")]

app = command_app("Show what was spent, set budgets, and let a paused agent go on.")


@app.callback(invoke_without_command=True)
def costs(
    context: typer.Context,
    by: Annotated[Grouping, typer.Option(help="What to add up by.")] = "day",
    json: Json = False,
) -> None:
    """Show what was spent, set budgets, and let a paused agent go on."""
    if context.invoked_subcommand is not None:
        return
    spent, budgets, agents = ask_hub(lambda client: _fetch_costs(client, by))
    if json:
        print_json({"by": by, "totals": spent, "budget": budgets, "agents": agents})
        return
    rows = [
        (
            clean(str(total.get("title") or total["key"] or "(none)")),
            str(total["calls"]),
            f"{total['inputTokens']:,}",
            f"{total['outputTokens']:,}",
            _dollars(total["costUsd"]) + (" *" if total["unpriced"] else ""),
        )
        for total in spent
    ]
    if rows:
        print_table((by.upper(), "CALLS", "TOKENS IN", "TOKENS OUT", "COST"), rows)
    else:
        print_line("No model was asked yet.")
    if any(total["unpriced"] for total in spent):
        print_paragraph("* Some prices are not known; these calls count as those of the dearest model known.")
    _print_budgets(budgets)
    for agent in agents:
        if agent.get("paused"):
            print_paragraph(f"{agent['agentId']} is paused: {clean(str(agent['pauseReason']))}")


@app.command()
def budget(day: Usd = None, month: Usd = None, json: Json = False) -> None:
    """Show how the budgets stand, or set them. A running Annabelle takes new ones at its next start."""
    home = Home.from_environment()
    wishes = {"BUDGET_DAY_USD": day, "BUDGET_MONTH_USD": month}
    changes = {name: value for name, value in wishes.items() if value is not None}
    if changes:
        _save_budgets(home, changes)
    budgets = None if changes else _fetch_budgets_if_running()
    settings = load_settings(home)
    configured: JsonObject = {"dayUsd": settings.budget_day_usd, "monthUsd": settings.budget_month_usd}
    if json:
        restart = bool(changes) and running_hub(home) is not None
        print_json({"configured": configured, "now": budgets, "restart_needed": restart})
        return
    if budgets is not None:
        _print_budgets(budgets)
        return
    for name, key in (("A day", "dayUsd"), ("A month", "monthUsd")):
        cap = configured[key]
        print_line(f"{name} has no budget." if cap is None else f"{name} may cost {_dollars(cap)}.")
    if changes and running_hub(home) is not None:
        print_line("It counts from the next start: annabelle restart")


@app.command()
def resume(
    agent: Annotated[str, typer.Argument(help="The agent that is paused.")],
    reset_window: Annotated[
        bool, typer.Option("--reset-window", help="Forget what it spent in the last hour, so that it starts afresh.")
    ] = False,
    json: Json = False,
) -> None:
    """Let a paused agent go on."""
    status = post_json(f"/agents/{quote(agent, safe='')}/resume", {"resetWindow": reset_window})
    print_outcome(status, f"{agent} goes on.", json=json)


async def _fetch_costs(client: CliHubClient, by: Grouping) -> tuple[list[JsonObject], JsonObject, list[JsonObject]]:
    spent = await client.get("/costs", by=by, everyone="true")
    budgets = await client.get("/costs/budget")
    agents = await client.get("/agents")
    return cast("list[JsonObject]", spent["totals"]), budgets, cast("list[JsonObject]", agents["agents"])


def _fetch_budgets_if_running() -> JsonObject | None:
    try:
        return get_json("/costs/budget")
    except HubUnreachable:
        return None  # the configured budgets are known without it


def _save_budgets(home: Home, changes: dict[str, str]) -> None:
    wanted = {name: "" if value == "none" else value for name, value in changes.items()}
    for name, value in wanted.items():
        if value:
            check_value(*find_setting(name), value)
    SettingsFile(home.prepare().settings_file).change(wanted)


def _print_budgets(budgets: JsonObject) -> None:
    for name, title in (("day", "Today"), ("month", "This month")):
        one = cast("JsonObject", budgets[name])
        spent = f"{title}: {_dollars(one['spentUsd'])} spent"
        held = cast("float", one["heldBackUsd"])
        if held:
            spent += f", {_dollars(held)} held back for calls that run"
        if one["capUsd"] is None:
            print_line(f"{spent}; no budget is set.")
        else:
            print_line(f"{spent}; {_dollars(one['leftUsd'])} of {_dollars(one['capUsd'])} is left.")


def _dollars(amount: object) -> str:
    if not isinstance(amount, int | float):
        return "–"
    return f"${amount:,.2f}" if amount == 0 or amount >= 1 else f"${amount:.4f}"
