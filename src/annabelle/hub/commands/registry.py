"""Finds the command in a message, checks who may give it, and runs it."""

from __future__ import annotations

import difflib
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import CHAT_APPS, OWNER, InboundMessage
from annabelle.hub.commands.command import Button, Command, CommandAnswer, CommandCall, CommandDeps, CommandInfo
from annabelle.hub.security.identities import HomeUsers

_log = logging.getLogger(__name__)
_COMMAND: Final = re.compile(r"/([a-z][a-z0-9_-]{0,39})(?:@\w{1,64})?(?:\s+(.*))?", re.IGNORECASE | re.DOTALL)
_ALIKE: Final = 0.8
"""How close a mistyped name must be to be taken for a command, and not for words to the model."""


@dataclass(frozen=True, slots=True)
class ParsedCommand:
    """A message that is a command. `command` is None if its name was mistyped; then `name` is as it was written."""

    name: str
    rest: str
    command: Command | None

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(self.rest.split())


class CommandRegistry:
    def __init__(self, kinds: Sequence[type[Command]], deps: CommandDeps) -> None:
        self._commands = {kind.info.name: kind(deps) for kind in kinds}
        self._users: HomeUsers = deps.users

    def find(self, message: InboundMessage) -> ParsedCommand | None:
        """The command in a message; None if it is for the model. Only a person gives commands."""
        return self.parse(message.text) if message.source == "user" else None

    def parse(self, text: str) -> ParsedCommand | None:
        """The command in what a person wrote; None if it is for the model."""
        match = _COMMAND.fullmatch(text.strip())
        if match is None:
            return None
        name, rest = match[1].lower(), match[2] or ""
        command = self._commands.get(name)
        return ParsedCommand(name, rest, command) if command is not None or self._find_alike(name) else None

    def menu(self, user_id: str) -> list[tuple[str, str]]:
        """Name and summary of each command that the person may give, for a channel's menu."""
        return [(info.name, info.summary) for info in self.infos(user_id)]

    def infos(self, user_id: str) -> list[CommandInfo]:
        admin = self.is_admin(user_id)
        return [one.info for one in self._commands.values() if admin or not one.info.admin]

    def is_admin(self, user_id: str) -> bool:
        user = self._users.users.get(user_id)
        return user_id == OWNER or (user is not None and user.admin)

    async def run(self, parsed: ParsedCommand, message: InboundMessage, call: CommandCall) -> CommandAnswer:
        """The answer, whatever goes wrong: a channel that gets none would send the message again."""
        if parsed.command is None:
            close = self._find_alike(parsed.name)
            return CommandAnswer(
                f"There is no command /{parsed.name}. Did you mean /{close}?", (Button(f"/{close}", f"/{close}"),)
            )
        info = parsed.command.info
        if info.admin and not call.admin:
            return CommandAnswer(f"Only an admin of this Annabelle may use /{info.name}.")
        if message.scopes is not None and info.scope not in message.scopes:
            return CommandAnswer(f"/{info.name} needs the scope {info.scope}, which this token does not have.")
        try:
            return await parsed.command.run(call)
        except AnnabelleError as error:
            return CommandAnswer(_explain(error, call.channel))
        except Exception:  # noqa: BLE001  the edge of all commands
            _log.exception("/%s failed unexpectedly", info.name)
            return CommandAnswer(f"/{info.name} failed unexpectedly; the log says why.")

    def _find_alike(self, name: str) -> str | None:
        return next(iter(difflib.get_close_matches(name, self._commands, 1, _ALIKE)), None)


def _explain(error: AnnabelleError, channel: str) -> str:
    """In words. Somebody on a phone has no terminal, so a hint that names one of its commands is left out there."""
    body = error.body()
    return body.message if channel in CHAT_APPS and "annabelle " in (body.hint or "") else body.for_person
