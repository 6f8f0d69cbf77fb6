"""`annabelle connect telegram`: signed in with the code Telegram sends, and the second password where there is one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from pydantic import SecretStr
from telethon import TelegramClient, errors
from telethon.tl import types

from annabelle.cli.connect import telegram_session
from annabelle.cli.connect.telegram import TelegramApplication
from annabelle.core.connections import TelegramAccount, connection_file, read_connection, write_connection
from annabelle.core.home import Home
from cli.terminal import environment, run
from cli.typed import Keyboard, Typed
from support.few_servers import only

pytestmark = pytest.mark.req("SRV-TEL")
CODE, PASSWORD, SESSION, HASH = "12345", "second password", "1session-nobody-may-see", "hash0nobody0may0see"


class Session:
    def __init__(self, client: LoginDouble) -> None:
        self._client = client

    def save(self) -> str:
        return SESSION if self._client.signed_in else ""


class LoginDouble:
    """Signs in as Telethon's client does, and raises what it raises."""

    def __init__(self, *, password: str | None = None, failure: Exception | None = None) -> None:
        self.password, self.failure = password, failure
        self.phone = ""
        self.code_given = self.signed_in = self.connected = False
        self.made_for: TelegramApplication | None = None
        self.session = Session(self)

    async def connect(self) -> None:
        self.connected = True

    async def disconnect(self) -> None:
        self.connected = False

    async def send_code_request(self, phone: str) -> None:
        assert self.connected
        if self.failure is not None:
            raise self.failure
        self.phone = phone

    async def sign_in(self, phone: str | None = None, code: str | None = None, *, password: str | None = None) -> None:
        if password is not None:
            assert self.code_given
            if password != self.password:
                raise errors.PasswordHashInvalidError(request=None)
        else:
            if (phone, code) != (self.phone, CODE):
                raise errors.PhoneCodeInvalidError(request=None)
            self.code_given = True
            if self.password is not None:
                raise errors.SessionPasswordNeededError(request=None)
        self.signed_in = True

    async def log_out(self) -> bool:
        raise errors.RPCError(request=None, message="not now", code=500)

    async def get_me(self) -> types.User | None:
        return types.User(id=1, first_name="Ada", last_name="Lovelace", phone="4915112345") if self.signed_in else None


Login = Callable[..., LoginDouble]


@pytest.fixture
def login(monkeypatch: pytest.MonkeyPatch) -> Login:
    def make(**options: object) -> LoginDouble:
        double = LoginDouble(**options)  # pyright: ignore

        def client(application: TelegramApplication, session: str = "") -> LoginDouble:
            double.made_for = application
            return double

        monkeypatch.setattr(telegram_session, "make_client", client)
        return double

    return make


@pytest.fixture
def typed(home: Home, monkeypatch: pytest.MonkeyPatch) -> Keyboard:
    return Keyboard({"TELEGRAM_API_ID": "42", "TELEGRAM_API_HASH": HASH}, monkeypatch)


def kept(home: Home) -> TelegramAccount | None:
    return read_connection(home, "telegram", TelegramAccount)


def shows_no_secret(done: Typed) -> None:
    for secret in (SESSION, HASH, PASSWORD):
        assert secret not in done.out + done.err


def test_a_number_and_its_code_are_enough(typed: Keyboard, login: Login, home: Home) -> None:
    double = login()
    done = typed("connect", "telegram", "--phone", "+49 151 (12) 345", stdin=f"{CODE}\n")
    assert (done.code, done.out) == (0, "Connected to Telegram as Ada Lovelace +4915112345.\n")
    account = kept(home)
    assert account is not None
    assert (account.api_id, account.api_hash.get_secret_value()) == (42, HASH)
    assert (account.session.get_secret_value(), account.phone) == (SESSION, "+4915112345")
    assert double.made_for is not None
    assert double.made_for.api_id == 42
    assert not double.connected, "the connection is closed behind it"
    assert connection_file(home, "telegram").stat().st_mode & 0o777 == 0o600
    shows_no_secret(done)
    listed = typed("connect")
    assert "Ada Lovelace +4915112345" in listed.out
    shows_no_secret(listed)
    assert "Settings, Devices" in typed("connect", "remove", "telegram", "--yes").out
    assert kept(home) is None


def test_a_wrong_code_and_a_wrong_password_may_be_typed_again(typed: Keyboard, login: Login, home: Home) -> None:
    login(password=PASSWORD)
    answers = f"+4915112345\n00000\n{CODE}\nwrong\n{PASSWORD}\n"
    done = typed("connect", "telegram", stdin=answers)
    assert (done.code, done.out) == (0, "Connected to Telegram as Ada Lovelace +4915112345.\n")
    assert done.err == "That code is wrong.\nThat password is wrong.\n"
    shows_no_secret(done)
    assert typed("connect", "telegram", "--phone", "+4915112345", "--json", stdin=f"{CODE}\n{PASSWORD}\n").json == {
        "kind": "telegram", "account": "Ada Lovelace +4915112345", "hub_told": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ("+4915112345\n1\n2\n3\n4\n", "The code was wrong too often."),
        (f"+4915112345\n{CODE}\n1\n2\n3\n4\n", "The password was wrong too often."),
        ("+4915112345\n", "Code that Telegram sent you is missing."),
        (f"+4915112345\n{CODE}\n", "Password of your two-step verification is missing."),
        ("", "Phone number with country code is missing."),
        ("0151 12345\n", "not a phone number with its country code"),
        ("+49\x00151\n", "control character"),
    ],
)
def test_what_stays_wrong_ends_it_and_keeps_nothing(
    typed: Keyboard, login: Login, home: Home, answers: str, words: str
) -> None:
    double = login(password=PASSWORD)
    done = typed("connect", "telegram", stdin=answers)
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert kept(home) is None
    assert not double.connected


@pytest.mark.parametrize(
    ("failure", "code", "words"),
    [
        (errors.FloodWaitError(request=None, capture=77), 2, "wait 77 seconds"),
        (errors.ApiIdInvalidError(request=None), 2, "does not know this application id"),
        (errors.PhoneNumberInvalidError(request=None), 2, "does not take this phone number"),
        (errors.PhoneNumberUnoccupiedError(request=None), 2, "No Telegram account has this number."),
        (errors.PhoneNumberBannedError(request=None), 2, "has banned this number"),
        (errors.PhoneCodeExpiredError(request=None), 2, "The code has expired."),
        (errors.AuthRestartError(request=None), 1, "Telegram refused the sign-in"),
        (ConnectionError("Connection to Telegram failed 5 time(s)"), 1, "Telegram can not be reached."),
        (TimeoutError(), 1, "Telegram can not be reached."),
    ],
)
def test_what_telegram_refuses_is_one_sentence(
    typed: Keyboard, login: Login, home: Home, failure: Exception, code: int, words: str
) -> None:
    login(failure=failure)
    done = typed("connect", "telegram", "--phone", "+4915112345", stdin=f"{CODE}\n")
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert "caused by" not in done.err
    assert kept(home) is None


def test_without_an_application_it_says_where_to_make_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    done = Keyboard({}, monkeypatch)("connect", "telegram", "--phone", "+4915112345")
    assert (done.code, done.out) == (2, "")
    for word in ("my.telegram.org", "TELEGRAM_API_ID", "TELEGRAM_API_HASH"):
        assert word in done.err


def test_the_client_is_telethons_and_touches_no_network_by_itself() -> None:
    async def made() -> object:
        return await telegram_session._make_client(TelegramApplication(1, SecretStr("hash")))

    client = asyncio.run(made())
    assert isinstance(client, TelegramClient)
    assert client.session.save() == ""


@pytest.mark.req("SRV-TEL", "UX-01")
def test_a_running_annabelle_takes_a_changed_account_at_once(
    home: Home, login: Login, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = environment(home, TELEGRAM_API_ID="42", TELEGRAM_API_HASH=HASH) | only("telegram")
    started = run(known, "up")
    assert started.returncode == 0, started.stderr
    try:
        typed = Keyboard(known, monkeypatch)
        login()

        def missing() -> object:
            servers = typed("status", "--json").json["servers"]
            return next(server["missing"] for server in servers if server["name"] == "telegram")

        assert "Run: annabelle connect telegram" in str(missing())
        done = typed("connect", "telegram", "--phone", "+4915112345", "--json", stdin=f"{CODE}\n")
        assert done.json["hub_told"] is True
        assert missing() is None
        assert typed("connect", "remove", "telegram", "--yes", "--json").json["hub_told"] is True
        assert "Run: annabelle connect telegram" in str(missing())
        logs = "".join(file.read_text() for file in home.logs.glob("*.log"))
        assert SESSION not in logs
    finally:
        assert run(known, "down").returncode == 0


class LeavingDouble:
    """Signs out as Telethon's client does, or fails as it does."""

    def __init__(self, failure: Exception | None) -> None:
        self.failure = failure
        self.left = self.connected = False

    async def connect(self) -> None:
        self.connected = True

    async def disconnect(self) -> None:
        self.connected = False

    async def log_out(self) -> bool:
        assert self.connected
        if self.failure is not None:
            raise self.failure
        self.left = True
        return True


@pytest.mark.parametrize(
    ("failure", "left", "said"),
    [
        (None, True, "Telegram has ended the session too."),
        (errors.AuthKeyUnregisteredError(request=None), False, "Telegram has ended the session too."),
        (ConnectionError("Connection to Telegram failed"), False, "end it there: Settings, Devices, Annabelle."),
    ],
)
def test_removing_the_account_ends_its_session_at_telegram_or_says_how_to(
    typed: Keyboard, home: Home, monkeypatch: pytest.MonkeyPatch, failure: Exception | None, left: bool, said: str
) -> None:
    account = TelegramAccount(api_id=42, api_hash=SecretStr(HASH), session=SecretStr(SESSION), phone="+49151")
    write_connection(home.prepare(), "telegram", account)
    double = LeavingDouble(failure)
    monkeypatch.setattr(telegram_session, "make_client", lambda account, session: double)
    done = typed("connect", "remove", "telegram", "--yes")
    assert done.code == 0
    assert said in " ".join(done.out.split())
    assert (double.left, double.connected, kept(home)) == (left, False, None)
    shows_no_secret(done)
