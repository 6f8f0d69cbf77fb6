"""All commands, in the order in which the help shows them."""

from __future__ import annotations

from typing import Final

from annabelle.hub.commands.approval import ApproveCommand, DenyCommand
from annabelle.hub.commands.browser import BrowserCommand
from annabelle.hub.commands.command import Command
from annabelle.hub.commands.cost import CostCommand
from annabelle.hub.commands.cron import CronCommand
from annabelle.hub.commands.delete import DeleteCommand
from annabelle.hub.commands.diagnose import DiagnoseCommand
from annabelle.hub.commands.goals import GoalsCommand
from annabelle.hub.commands.halt import KillCommand, ResumeCommand
from annabelle.hub.commands.help import HelpCommand
from annabelle.hub.commands.logs import LogsCommand
from annabelle.hub.commands.memory import MemoryCommand
from annabelle.hub.commands.new import NewCommand
from annabelle.hub.commands.rules import RulesCommand
from annabelle.hub.commands.security import SecurityCommand
from annabelle.hub.commands.status import StatusCommand
from annabelle.hub.commands.stop import StopCommand

COMMANDS: Final[tuple[type[Command], ...]] = (
    HelpCommand,
    StatusCommand,
    NewCommand,
    StopCommand,
    ApproveCommand,
    DenyCommand,
    RulesCommand,
    MemoryCommand,
    GoalsCommand,
    CronCommand,
    CostCommand,
    DiagnoseCommand,
    LogsCommand,
    SecurityCommand,
    BrowserCommand,
    KillCommand,
    ResumeCommand,
    DeleteCommand,
)
