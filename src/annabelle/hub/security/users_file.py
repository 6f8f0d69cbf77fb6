"""config/users.json: the users beside the owner, and everybody's tokens (I-03, I-30).

The file holds only hashes of tokens. `annabelle users` and the hub write it; it may be edited by hand.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Collection
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Literal, Self, get_args

from pydantic import Field, ValidationError, model_validator

from annabelle.core.config_file import ConfigEntry, ConfigFile, lock_for_change, parse_config
from annabelle.core.errors import (
    Conflict,
    InvalidArguments,
    NotAllowed,
    NotFound,
    StorageTrouble,
    Unauthorized,
    explain_os_error,
)
from annabelle.core.home import write_atomically
from annabelle.core.messages import OWNER, now

USER_ID = r"^[a-z0-9][a-z0-9_-]{0,39}$"
MAIN: Final = "main"
"""The token a person begins with: the owner's is in annabelle.token, that of others came from `users add`."""
SESSION_NAME: Final = re.compile(r"page-\d{1,9}")
"""Of the tokens that are sessions of the page."""
SESSION_TTL: Final = timedelta(days=30)
_MOST_TOKENS: Final = 50

CallerKind = Literal["person", "device", "agent"]
"""Who speaks with a token. A device speaks for its person; what an agent says is never the person's word."""
Scope = Literal["talk", "threads", "tools", "approve", "manage", "tokens"]
"""What a token may do, within what its person may. `manage` is all that no other scope names."""
SCOPES: Final[frozenset[Scope]] = frozenset(get_args(Scope))
KIND_SCOPES: Final[dict[CallerKind, frozenset[Scope]]] = {
    "person": SCOPES,
    "device": SCOPES - {"tokens"},
    "agent": frozenset({"talk", "tools"}),
}


class HomeUser(ConfigEntry):
    """One person. What is not said here is what everybody may: talk, and their own memory."""

    id: str = Field(pattern=USER_ID)
    token_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    created_at: datetime
    admin: bool = Field(default=False, description="May use the commands that are for admins, as the owner may")
    allowed_tools: tuple[str, ...] = Field(
        default=(), description="Globs: tools of other servers they may use, themselves and through an agent"
    )


class ApiToken(ConfigEntry):
    """One more token of a person."""

    user_id: str = Field(default=OWNER, pattern=USER_ID)
    name: str = Field(pattern=USER_ID)
    kind: CallerKind
    scopes: tuple[Scope, ...]
    token_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    created_at: datetime

    @property
    def ends_at(self) -> datetime | None:
        """When it is good no more. Only sessions of the page end by themselves."""
        return self.created_at + SESSION_TTL if SESSION_NAME.fullmatch(self.name) else None

    @model_validator(mode="after")
    def _within_kind(self) -> Self:
        if self.name == MAIN:
            raise ValueError(f"tokens: {MAIN} is the name of the token a person begins with")
        if beyond := set(self.scopes) - KIND_SCOPES[self.kind]:
            raise ValueError(f"tokens: {self.name} is of the kind {self.kind}, which has no scope {min(beyond)}")
        return self


class UserList(ConfigEntry):
    """The whole file."""

    users: tuple[HomeUser, ...] = ()
    tokens: tuple[ApiToken, ...] = ()

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        ids = [user.id for user in self.users]
        tokens = [one.token_sha256 for one in (*self.users, *self.tokens)]
        named = [(token.user_id, token.name) for token in self.tokens]
        if len(set(named)) < len(named):
            raise ValueError("tokens: a person has two tokens of one name")
        if unknown := {user_id for user_id, _ in named} - {OWNER, *ids}:
            raise ValueError(f"tokens: there is no user {min(unknown)}")
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


def token_revoked() -> Unauthorized:
    return Unauthorized("The token was revoked.", hint="Whoever made it can make another: annabelle tokens add")


def read_users(path: Path) -> UserList:
    """The users in the file, none if it is missing. A ConfigMistake names the field."""
    text = ConfigFile(path).read_text()
    return UserList() if text is None else parse_config(UserList, text, str(path))


def add_user(path: Path, user_id: str) -> str:
    """Add a user. Returns the token, which is stored nowhere."""
    with lock_for_change(path):
        users = read_users(path)
        if users.get(user_id) is not None:
            raise Conflict(f"There is a user {user_id} already.", hint="Remove them first to make a new token.")
        token = secrets.token_urlsafe(32)
        try:
            new = HomeUser(id=user_id, token_sha256=hash_token(token.encode()), created_at=now())
            _write(path, UserList(users=(*users.users, new), tokens=users.tokens))
        except ValidationError as error:
            raise InvalidArguments(
                f"{user_id!r} can not be a user's name.", hint=f"Use up to 40 of a-z, 0-9, - and _; {OWNER} is taken."
            ) from error
    return token


def set_admin(path: Path, user_id: str, *, admin: bool) -> None:
    """Let a user use the commands that are for admins, or no longer."""
    with lock_for_change(path):
        users = read_users(path)
        if users.get(user_id) is None:
            raise _unknown_user(user_id)
        changed = [one.model_copy(update={"admin": admin}) if one.id == user_id else one for one in users.users]
        _write(path, UserList(users=tuple(changed), tokens=users.tokens))


def _unknown_user(user_id: str) -> NotFound:
    return NotFound(f"There is no user {user_id}.", hint="annabelle users list shows who there is.")


def remove_user(path: Path, user_id: str) -> None:
    """Remove a user and all their tokens. Their messages and memories stay."""
    with lock_for_change(path):
        users = read_users(path)
        if users.get(user_id) is None:
            raise _unknown_user(user_id)
        left = tuple(user for user in users.users if user.id != user_id)
        _write(path, UserList(users=left, tokens=tuple(one for one in users.tokens if one.user_id != user_id)))


class UserTokens:
    """The tokens of one person, as somebody who holds one of them may change them.

    Every change reads the file again under a lock, so that a token that was revoked a moment ago makes no other.
    """

    def __init__(self, path: Path, user_id: str, held: str, scopes: frozenset[Scope]) -> None:
        """`held` is the hash of the caller's token and `scopes` what it may do."""
        self._path, self._user_id, self._held, self._scopes = path, user_id, held, scopes

    def add(self, name: str, kind: CallerKind, scopes: Collection[Scope] | None) -> tuple[ApiToken, str]:
        """Make a token, by default with all scopes that its kind and the caller have. The secret is stored nowhere."""
        wanted = self._scopes & KIND_SCOPES[kind] if scopes is None else frozenset(scopes)
        self._require_held(wanted)
        if beyond := wanted - KIND_SCOPES[kind]:
            raise NotAllowed(f"A token of the kind {kind} can not have the scope {min(beyond)}.", field="scopes")
        with lock_for_change(self._path):
            users = self._read()
            if self._find(users, name) is not None or name == MAIN:
                raise Conflict(f"There is a token {name} already.", hint="Take another name, or rotate it.")
            if sum(one.user_id == self._user_id for one in users.tokens) >= _MOST_TOKENS:
                raise Conflict(f"There are {_MOST_TOKENS} tokens already.", hint="Revoke one that is not needed.")
            return self._put(users, name, kind, wanted)

    def rotate(self, name: str) -> tuple[ApiToken, str]:
        """Give a token a new secret. It may do what it could before, and never more than the caller (I-03)."""
        with lock_for_change(self._path):
            users = self._read()
            before = self._require(users, name)
            self._require_held(before.scopes)
            return self._put(users, name, before.kind, before.scopes)

    def revoke(self, name: str) -> ApiToken:
        with lock_for_change(self._path):
            users = self._read()
            gone = self._require(users, name)
            _write(self._path, UserList(users=users.users, tokens=tuple(one for one in users.tokens if one != gone)))
            return gone

    def _read(self) -> UserList:
        users = read_users(self._path)
        # The owner's first token is not in the file.
        known = {one.token_sha256 for one in (*users.users, *users.tokens)}
        if self._held and self._held not in known:
            raise token_revoked()
        return users

    def _find(self, users: UserList, name: str) -> ApiToken | None:
        return next((one for one in users.tokens if (one.user_id, one.name) == (self._user_id, name)), None)

    def _require(self, users: UserList, name: str) -> ApiToken:
        if name == MAIN:
            raise NotAllowed(
                f"The token {MAIN} goes with the person and can not be changed here.",
                hint="The owner removes annabelle.token and restarts, or lets somebody else in again: annabelle users.",
            )
        found = self._find(users, name)
        if found is None:
            raise NotFound(f"There is no token {name}.", hint="annabelle tokens lists yours.")
        return found

    def _require_held(self, wanted: Collection[Scope]) -> None:
        if beyond := set(wanted) - self._scopes:
            raise NotAllowed(f"Your own token has no scope {min(beyond)}, so it can not give it.", field="scopes")

    def _put(self, users: UserList, name: str, kind: CallerKind, scopes: Collection[Scope]) -> tuple[ApiToken, str]:
        secret = secrets.token_urlsafe(32)
        new = ApiToken(
            user_id=self._user_id,
            name=name,
            kind=kind,
            scopes=tuple(one for one in get_args(Scope) if one in scopes),
            token_sha256=hash_token(secret.encode()),
            created_at=now(),
        )
        kept = tuple(one for one in users.tokens if (one.user_id, one.name) != (new.user_id, name))
        _write(self._path, UserList(users=users.users, tokens=(*kept, new)))
        return new, secret


def _write(path: Path, users: UserList) -> None:
    text = json.dumps(users.model_dump(mode="json", by_alias=True, exclude_defaults=True) or {"users": []}, indent=2)
    hint = "Free space or fix the permissions of the home."
    with explain_os_error(StorageTrouble, f"{path} can not be written", hint=hint):
        write_atomically(path, text + "\n", mode=0o600)
