"""config/users.json: the users beside the owner, each with a token of their own (I-30).

The file holds only hashes of tokens. `annabelle users` writes it; it may be edited by hand.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from datetime import datetime
from pathlib import Path
from typing import Self

from pydantic import Field, ValidationError, model_validator

from annabelle.core.config_file import ConfigEntry, ConfigFile, parse_config
from annabelle.core.errors import Conflict, InvalidArguments, NotFound, OperatorMistake, explain_os_error
from annabelle.core.home import write_atomically
from annabelle.core.messages import OWNER, now

USER_ID = r"^[a-z0-9][a-z0-9_-]{0,39}$"


class HomeUser(ConfigEntry):
    """One person. What is not said here is what everybody may: talk, and their own memory."""

    id: str = Field(pattern=USER_ID)
    token_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    created_at: datetime
    allowed_tools: tuple[str, ...] = Field(
        default=(), description="Globs: tools of other servers they may use, themselves and through an agent"
    )


class UserList(ConfigEntry):
    """The whole file."""

    users: tuple[HomeUser, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids, tokens = [user.id for user in self.users], [user.token_sha256 for user in self.users]
        if OWNER in ids:
            raise ValueError(f"users: {OWNER} is the one whose home this is, and has the token in annabelle.token")
        for seen, what in ((ids, "is named twice"), (tokens, "is the token of two people")):
            for value in seen:
                if seen.count(value) > 1:
                    raise ValueError(f"users: {value if seen is ids else 'one token'} {what}")
        return self

    def get(self, user_id: str) -> HomeUser | None:
        return next((user for user in self.users if user.id == user_id), None)


def hash_token(token: bytes) -> str:
    """Hash of a token. Tokens are long and random, so one round is enough."""
    return hashlib.sha256(token).hexdigest()


def read_users(path: Path) -> UserList:
    """The users in the file, none if it is missing. A ConfigMistake names the field."""
    text = ConfigFile(path).read_text()
    return UserList() if text is None else parse_config(UserList, text, str(path))


def add_user(path: Path, user_id: str) -> str:
    """Add a user. Returns the token, which is stored nowhere."""
    users = read_users(path)
    if users.get(user_id) is not None:
        raise Conflict(f"There is a user {user_id} already.", hint="Remove them first to make a new token.")
    token = secrets.token_urlsafe(32)
    try:
        new = HomeUser(id=user_id, token_sha256=hash_token(token.encode()), created_at=now())
        _write(path, UserList(users=(*users.users, new)))
    except ValidationError as error:
        raise InvalidArguments(
            f"{user_id!r} can not be a user's name.", hint=f"Use up to 40 of a-z, 0-9, - and _; {OWNER} is taken."
        ) from error
    return token


def remove_user(path: Path, user_id: str) -> None:
    """Remove a user. Their messages and memories stay."""
    users = read_users(path)
    if users.get(user_id) is None:
        raise NotFound(f"There is no user {user_id}.", hint="annabelle users list shows who there is.")
    _write(path, UserList(users=tuple(user for user in users.users if user.id != user_id)))


def _write(path: Path, users: UserList) -> None:
    text = json.dumps(users.model_dump(mode="json", by_alias=True, exclude_defaults=True) or {"users": []}, indent=2)
    hint = "Free space or fix the permissions of the home."
    with explain_os_error(OperatorMistake, f"{path} can not be written", hint=hint):
        write_atomically(path, text + "\n", mode=0o600)
