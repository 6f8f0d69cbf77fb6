"""The commands as data, so that `annabelle --help` imports none of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CliCommand:
    """One command. Its module `annabelle.cli.{name}` has a Typer application called `app`."""

    name: str
    help: str

    @property
    def module(self) -> str:
        return f"annabelle.cli.{self.name}"


COMMANDS = (
    CliCommand("init", "Set up Annabelle: a model, your name, time zone, language and accounts."),
    CliCommand("chat", "Talk to Annabelle; the same as no command at all."),
    CliCommand("ask", "Ask one question and print the answer."),
    CliCommand("open", "Open Annabelle in the browser."),
    CliCommand("up", "Start Annabelle in the background."),
    CliCommand("down", "Stop the Annabelle that runs in the background."),
    CliCommand("stop", "Stop an agent or all of them, whatever hangs; they stay stopped."),
    CliCommand("resume", "Let go on what was stopped."),
    CliCommand("restart", "Stop Annabelle and start it again."),
    CliCommand("service", "Run Annabelle as a service of this machine."),
    CliCommand("status", "Show what runs and how it is doing."),
    CliCommand("doctor", "Look for what may be wrong, and fix what is safe to fix."),
    CliCommand("health", "End what hangs, try again what waits, and clear away what is over."),
    CliCommand("agents", "List the agents, or show one: what it does, what it did and what it spent."),
    CliCommand("logs", "Show the log of the hub or of another component."),
    CliCommand("tools", "List the tools, or call one."),
    CliCommand("memory", "See, search, correct, move and tidy what Annabelle remembers."),
    CliCommand("notes", "Keep notes and links, find them, and put them to your goals."),
    CliCommand("forget", "Forget something for good, everywhere."),
    CliCommand("sessions", "List your conversations, or start one afresh."),
    CliCommand("threads", "Read and search your conversations, and try again what ended in an error."),
    CliCommand("skills", "See and change what Annabelle does by itself: reminders and everything else on a schedule."),
    CliCommand("goals", "Give Annabelle goals to look after for weeks, and talk to them."),
    CliCommand("feed", "See what is new for your goals, and say when it comes."),
    CliCommand("tasks", "See the work that agents handed on: to subagents, the background and goals."),
    CliCommand("approvals", "See and answer what Annabelle asks before it does something."),
    CliCommand("rules", "Say what Annabelle must ask about or never do, and see what holds."),
    CliCommand("servers", "See the servers, and accept or reject those you added."),
    CliCommand("audit", "See what was done and decided, and check that nobody changed the record."),
    CliCommand("mcp", "Be an MCP server on standard input and output, for Claude Desktop, editors and other agents."),
    CliCommand("users", "Let other people talk to Annabelle, each with a memory of their own."),
    CliCommand("tokens", "Give programs, devices and other agents tokens of their own."),
    CliCommand("costs", "Show what was spent, set budgets, and let a paused agent go on."),
    CliCommand("models", "List, fetch and choose models."),
    CliCommand("trace", "Show what happened in one turn, step by step."),
    CliCommand("compare", "Run recorded conversations with and without the thinking phase."),
    CliCommand("channels", "See which chat apps are connected, and let accounts speak there."),
    CliCommand("connect", "Connect your accounts: Google, a mailbox, Telegram."),
    CliCommand("config", "List, read and change settings."),
    CliCommand("backup", "Back up everything in one file, also while Annabelle runs."),
    CliCommand("restore", "Put a backup in the place of the home, all of it or nothing."),
    CliCommand("version", "Print the version."),
)
