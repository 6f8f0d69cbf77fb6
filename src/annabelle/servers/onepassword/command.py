"""Runs `op` with checked arguments, a minimal environment and bounded time and output, and translates its errors."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import shutil
import signal
import tomllib
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import anyio
from pydantic import TypeAdapter, ValidationError

from annabelle.core.errors import (
    AnnabelleError,
    InvalidArguments,
    NotAllowed,
    NotFound,
    RetryByModel,
    ToolTimeout,
    TooManyRequests,
    Unavailable,
)
from annabelle.servers.kit import own_settings

NOT_SIGNED_IN = "1Password is not connected."
SIGN_IN = "Run: op signin, or set a service account: annabelle config set OP_SERVICE_ACCOUNT_TOKEN"

_COMPLAINTS = Path(__file__).with_name("complaints.toml")


def translate_error(complaint: str) -> AnnabelleError:
    """The error for what a failed command printed."""
    said = complaint.lower().replace("’", "'")
    known: dict[str, list[str]] = tomllib.loads(_COMPLAINTS.read_text(encoding="utf-8"))
    match next((kind for kind, words in known.items() if any(word in said for word in words)), None):
        case "too_many_requests":
            return TooManyRequests(
                "1Password allows no more requests for now.", hint="Try again later.", retry_after=60.0
            )
        case "ambiguous":
            return RetryByModel("More than one item has this name.", hint="Name the vault too, or use the item's id.")
        case "forbidden":
            return NotAllowed(
                "This account of 1Password may not see that.", hint="Its vaults: onepassword_list_vaults."
            )
        case "unknown":
            return NotFound(
                "1Password has no vault, item or field of this name.",
                hint="Look with onepassword_list_vaults and onepassword_list_items.",
            )
        case "signed_out":
            return Unavailable(NOT_SIGNED_IN, hint=SIGN_IN)
        case _:
            return Unavailable("1Password could not do it.", hint="Run it by hand to see why: op vault list")


@dataclass(frozen=True, slots=True)
class OnePasswordConfig:
    """Settings, read once at the start. `environment` is all that the command sees of ours."""

    program: Path | None = None
    environment: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    seconds: float = 20.0
    handle_seconds: float = 600.0

    @classmethod
    def from_environment(cls) -> OnePasswordConfig:
        settings = own_settings()
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        if settings.op_service_account_token is not None:
            environment["OP_SERVICE_ACCOUNT_TOKEN"] = settings.op_service_account_token.get_secret_value()
        program = settings.op_path.expanduser() if settings.op_path is not None else None
        return cls(program=program, environment=environment)

    @property
    def has_token(self) -> bool:
        return "OP_SERVICE_ACCOUNT_TOKEN" in self.environment


T = TypeVar("T")

MAX_OUTPUT_BYTES = 8_000_000
_MAX_COMPLAINT_BYTES = 20_000
_MAX_PARALLEL = 4
_KILL_SECONDS = 5.0
_NOT_INSTALLED = "The 1Password command op is not installed."
_INSTALL = "Install it as https://developer.1password.com/docs/cli/get-started says, or set OP_PATH to it."

_log = logging.getLogger(__name__)


class OpCommand:
    """The only access to 1Password. All errors of the command become our own messages."""

    def __init__(self, config: OnePasswordConfig) -> None:
        self._config = config
        self._semaphore = asyncio.Semaphore(_MAX_PARALLEL)

    async def describe_missing(self) -> str | None:
        """What is missing and what to do, without a network request."""
        if self._find_program() is None:
            return f"{_NOT_INSTALLED} {_INSTALL}"
        if self._config.has_token:
            return None
        try:
            accounts = await self.run_json(TypeAdapter(list[object]), "account", "list")
        except (Unavailable, ToolTimeout) as error:
            return f"{error.message} {error.hint or ''}".strip()
        return None if accounts else f"{NOT_SIGNED_IN} {SIGN_IN}"

    async def run_json(self, shape: TypeAdapter[T], *arguments: str) -> T:
        """The command's validated answer, since a newer version may answer differently."""
        output = await self.run_text(*arguments, "--format=json")
        try:
            return shape.validate_python(json.loads(output))
        except (ValidationError, ValueError, RecursionError):
            # The cause would put the answer, with its secrets, into the log.
            raise Unavailable(
                "1Password answered in a way that is not understood.", hint="Is op up to date? Run: op update"
            ) from None

    async def run_text(self, *arguments: str) -> str:
        """Run the command and return its output; raises if it fails."""
        program = self._find_program()
        if program is None:
            raise Unavailable(_NOT_INSTALLED, hint=_INSTALL)
        async with self._semaphore:
            try:
                async with asyncio.timeout(self._config.seconds):
                    code, output, complaint = await self._run(program, arguments)
            except TimeoutError:
                raise ToolTimeout(
                    f"1Password did not answer within {self._config.seconds:g} seconds.",
                    hint="It may be waiting to be unlocked; unlock it and try again.",
                ) from None
        if code != 0:
            _log.info("op %s ended with %d", " ".join(arguments[:2]), code)
            raise translate_error(complaint)
        return output

    async def _run(self, program: str, arguments: tuple[str, ...]) -> tuple[int, str, str]:
        try:
            process = await asyncio.create_subprocess_exec(
                program,
                *arguments,
                env=self._config.environment,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
                limit=MAX_OUTPUT_BYTES,
            )
        except OSError as error:
            raise Unavailable(
                f"The 1Password command could not be started: {error.strerror}.", hint="Check OP_PATH."
            ) from None
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            output, complaint = await asyncio.gather(
                _read_bounded(process.stdout, MAX_OUTPUT_BYTES), _read_bounded(process.stderr, _MAX_COMPLAINT_BYTES)
            )
            if output is None:
                raise Unavailable("1Password gave more than can be read at once.", hint="Ask for less.")
            code = await process.wait()
        finally:
            await _kill_process(process)
        return code, output.decode(errors="replace"), (complaint or b"").decode(errors="replace")

    def _find_program(self) -> str | None:
        named = self._config.program
        if named is not None:
            return str(named) if os.access(named, os.X_OK) and named.is_file() else None
        return shutil.which("op", path=self._config.environment.get("PATH", os.defpath))


async def _read_bounded(stream: asyncio.StreamReader, most: int) -> bytes | None:
    """Read everything, or None if it is more than `most` bytes."""
    blob = bytearray()
    while piece := await stream.read(65536):
        blob += piece
        if len(blob) > most:
            return None
    return bytes(blob)


async def _kill_process(process: asyncio.subprocess.Process) -> None:
    """Kill the command, with its children, if it still runs."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    # The SDK's cancel scopes cancel every wait inside; without a shielded wait the process would stay a zombie.
    with anyio.move_on_after(_KILL_SECONDS, shield=True):
        await process.wait()


CATEGORIES = (
    "API Credential", "Bank Account", "Credit Card", "Crypto Wallet", "Database", "Document", "Driver License",
    "Email Account", "Identity", "Login", "Medical Record", "Membership", "Outdoor License", "Passport", "Password",
    "Reward Program", "Secure Note", "Server", "Social Security Number", "Software License", "SSH Key",
    "Wireless Router",
)  # fmt: skip
_BY_KEY = {name.lower(): name for name in CATEGORIES}
_REFERENCE = re.compile(r"op://[^/?]+(?:/[^/?]+){2,3}(?:\?[a-z-]+=[a-z]+)?")


def check_name(text: str, field: str) -> str:
    """Check a vault or item name for the command line."""
    name = text.strip()
    if not name:
        raise InvalidArguments(f"{field} is empty.", field=field)
    if name.startswith("-"):
        raise InvalidArguments(
            f"{field} begins with a dash, which the 1Password command reads as an option.",
            hint="Use the id instead.",
            field=field,
        )
    _refuse_control(name, field)
    return name


def check_reference(text: str) -> str:
    reference = text.strip()
    _refuse_control(reference, "reference")
    if not _REFERENCE.fullmatch(reference):
        raise InvalidArguments(
            "The reference is not one of 1Password.",
            hint="It reads op://vault/item/field or op://vault/item/section/field.",
            field="reference",
        )
    return reference


def check_categories(names: Iterable[str]) -> list[str]:
    """Categories as the command spells them; SECURE_NOTE and secure-note also match."""
    chosen: list[str] = []
    for name in names:
        known = _BY_KEY.get(re.sub(r"[\s_-]+", " ", name.strip()).lower())
        if known is None:
            raise InvalidArguments(
                "There is no such category.", hint=f"There are {', '.join(CATEGORIES)}.", field="categories"
            )
        chosen.append(known)
    return list(dict.fromkeys(chosen))


def _refuse_control(text: str, field: str) -> None:
    if any(unicodedata.category(sign) in ("Cc", "Cs") for sign in text):
        raise InvalidArguments(f"{field} has characters that no name has.", field=field)
