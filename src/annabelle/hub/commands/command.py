"""What a command is: its name and help, what it is called with, and its answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from annabelle.channels.channel import Button
from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject
from annabelle.hub.agents.stopper import Stopper
from annabelle.hub.base import HubStorage
from annabelle.hub.security.identities import HomeUsers
from annabelle.hub.security.users_file import Scope
from annabelle.hub.services import HubServices
from annabelle.hub.status import StatusReader
from annabelle.store.messages import StoredMessage


@dataclass(frozen=True, slots=True)
class CommandInfo:
    """What is known about a command before it is called."""

    name: str
    summary: str
    """One line, for the help and for menus."""
    usage: str = ""
    """What may follow the name."""
    examples: tuple[str, ...] = ()
    """Calls that work in any home, for the documentation and its tests."""
    admin: bool = False
    """Only for the owner and those whom users.json names as admins (CMD-03)."""
    scope: Scope = "talk"
    """What a token must allow, so that a message gives it no right beyond its own."""

    @property
    def synopsis(self) -> str:
        return f"/{self.name} {self.usage}".rstrip()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandCall:
    """One command of one person, with the words after its name."""

    user_id: str
    agent_id: str
    channel: str
    chat_id: str
    message_id: str
    external_id: str | None = None
    """The sender's id of the message: the same if it comes again, because a kill came before its answer."""
    words: tuple[str, ...] = ()
    rest: str = ""
    """What follows the name, as it was written."""
    thread_id: str | None = None
    """The open thread of the chat; None before the first message."""
    admin: bool = False
    offered: tuple[CommandInfo, ...] = ()
    """The commands that this person may give."""


@dataclass(frozen=True, slots=True)
class CommandAnswer:
    text: str
    buttons: tuple[Button, ...] = ()
    goes_on: str | None = None
    """The message whose turn goes on because of it, for a client that shows one turn at a time."""

    def to_metadata(self, name: str) -> JsonObject:
        about: JsonObject = {"command": name}
        if self.goes_on is not None:
            about["goes_on"] = self.goes_on
        if self.buttons:
            about["buttons"] = [{"label": one.label, "command": one.command} for one in self.buttons]
        return about


class MessageRemover(Protocol):
    """A channel that can remove messages from a chat, those of the person where it may, and its own."""

    async def remove_messages(self, chat_id: str, wanted: Sequence[StoredMessage]) -> int:
        """Returns how many are gone. One that is gone already counts; one that cannot be removed does not."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandDeps:
    """What commands work with."""

    storage: HubStorage
    users: HomeUsers
    status: StatusReader
    stopper: Stopper
    services: HubServices
    removers: Mapping[str, MessageRemover]
    """By the name of the channel."""


class Command(ABC):
    """One command. A new one is a class in a file of its own and an entry in `COMMANDS` of the catalogue."""

    info: ClassVar[CommandInfo]

    def __init__(self, deps: CommandDeps) -> None:
        self.deps = deps

    @abstractmethod
    async def run(self, call: CommandCall) -> CommandAnswer:
        """Carry it out. An AnnabelleError becomes the answer."""

    def wrong_usage(self, problem: str) -> InvalidArguments:
        return InvalidArguments(problem, hint=f"Say: {self.info.synopsis}")

    def read_count(self, words: Sequence[str], default: int, most: int) -> int:
        """The number that may follow the name, from 1 to `most`."""
        if not words:
            return default
        if len(words) == 1 and words[0].isascii() and words[0].isdigit() and 1 <= int(words[0][:9]) <= most:
            return int(words[0])
        raise self.wrong_usage(f"“{' '.join(words)}” is no number from 1 to {most}.")

    def expect_no_words(self, call: CommandCall) -> None:
        if call.words:
            raise self.wrong_usage(f"/{self.info.name} takes nothing after it.")
