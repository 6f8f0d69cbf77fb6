"""The commands by name, as data: `annabelle --help` shows them without loading a single one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Command:
    """One command. Its code is `annabelle.cli.{name}`, which holds a Typer application called `app`."""

    name: str
    help: str

    @property
    def module(self) -> str:
        return f"annabelle.cli.{self.name}"


COMMANDS = (
    Command("chat", "Talk to Annabelle; the same as no command at all."),
    Command("ask", "Ask one question and print the answer."),
    Command("up", "Start Annabelle in the background."),
    Command("down", "Stop the Annabelle that runs in the background."),
    Command("stop", "Stop an agent or all of them, whatever hangs; they stay stopped."),
    Command("resume", "Let go on what was stopped."),
    Command("restart", "Stop Annabelle and start it again."),
    Command("service", "Run Annabelle as a service of this machine."),
    Command("status", "Show what runs and how it is doing."),
    Command("logs", "Show the log of the hub or of another component."),
    Command("tools", "List the tools, or call one."),
    Command("memory", "See, search, correct, move and tidy what Annabelle remembers."),
    Command("forget", "Forget something for good, everywhere."),
    Command("sessions", "List your conversations, or start one afresh."),
    Command("tasks", "List the work that agents handed on to subagents or to the background."),
    Command("approvals", "See and answer what Annabelle asks before it does something."),
    Command("rules", "Say what Annabelle must ask about or never do, and see what holds."),
    Command("servers", "See the servers, and accept or reject those you added."),
    Command("audit", "See what was done and decided, and check that nobody changed the record."),
    Command("users", "Let other people talk to Annabelle, each with a memory of their own."),
    Command("costs", "Show what was spent, set budgets, and let a paused agent go on."),
    Command("models", "List, fetch and choose models."),
    Command("trace", "Show what happened in one turn, step by step."),
    Command("compare", "Run recorded conversations with and without the thinking phase."),
    Command("connect", "Connect your accounts: Google, a mailbox, Telegram."),
    Command("config", "List, read and change settings."),
    Command("version", "Print the version."),
)
