"""`annabelle connect google`: allowed in a browser, brought back to this machine, kept for its owner's eyes only."""

from __future__ import annotations

import asyncio
import signal
import webbrowser
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from annabelle.core.connections import GoogleAccount, connection_file, read_connection
from annabelle.core.google_oauth import (
    MAIL_SCOPE,
    SCOPES,
    GoogleOAuthUrls,
    OAuthAttempt,
    OAuthClient,
    OAuthGrant,
    exchange,
    open_redirect_server,
)
from annabelle.core.home import Home
from cli.sign_ins import ACCESS, REFRESH, Browser, Google, GoogleHandler, serving
from cli.terminal import Terminal, json_only
from cli.typed import Keyboard, Typed
from support.timing import seconds

pytestmark = pytest.mark.req("SRV-MAI")
BrowserOf = Callable[..., Browser]


@pytest.fixture
def google() -> Iterator[Google]:
    made = Google()
    with serving(GoogleHandler, made) as port:
        made.url = f"http://127.0.0.1:{port}"
        yield made


@pytest.fixture
def typed(home: Home, google: Google, monkeypatch: pytest.MonkeyPatch) -> Keyboard:
    known = {"GOOGLE_API_URL": google.url, "GOOGLE_CLIENT_ID": "client-1", "GOOGLE_CLIENT_SECRET": google.secret}
    return Keyboard(known, monkeypatch)


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[BrowserOf]:
    made: list[Browser] = []

    def make(*before: str) -> Browser:
        made.append(Browser(*before))
        monkeypatch.setattr(webbrowser, "open", made[-1].open)
        return made[-1]

    yield make
    for one in made:
        one.close()


def kept(home: Home) -> GoogleAccount | None:
    return read_connection(home, "google", GoogleAccount)


def shows_no_secret(done: Typed, google: Google, home: Home) -> None:
    logs = "".join(file.read_text() for file in home.logs.glob("*.log"))
    for secret in (REFRESH, ACCESS, google.secret):
        assert secret not in done.out + done.err + logs


def test_a_sign_in_in_the_browser_is_kept_with_its_address(
    typed: Keyboard, google: Google, home: Home, browser: BrowserOf
) -> None:
    window = browser()
    done = typed("connect", "google")
    assert (done.code, done.out) == (0, "Connected to Google as ada@example.com.\n")
    assert window.opened[0] in done.err
    window.close()
    page = window.pages[-1]
    assert "You may close this page" in page.text
    assert "src=" not in page.text, "the page needs nothing from elsewhere"
    assert (google.asked["access_type"], google.asked["code_challenge_method"]) == ("offline", "S256")
    assert google.asked["scope"].split() == list(SCOPES)
    assert google.asked["redirect_uri"].startswith("http://127.0.0.1:")
    account = kept(home)
    assert account is not None
    assert (account.email, account.refresh_token.get_secret_value()) == ("ada@example.com", REFRESH)
    file = connection_file(home, "google")
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    shows_no_secret(done, google, home)
    listed = typed("connect")
    assert "google    ada@example.com  connected" in listed.out
    shows_no_secret(listed, google, home)


def test_a_machine_gets_one_document(typed: Keyboard, google: Google, browser: BrowserOf) -> None:
    browser()
    done = typed("connect", "google", "--json")
    assert json_only(done.out) == {
        "kind": "google", "account": "ada@example.com", "not_allowed": [], "hub_told": False,
    }  # fmt: skip
    states = {one["kind"]: one["state"] for one in typed("connect", "--json").json["connections"]}
    assert states == {"google": "connected", "mail": "missing", "telegram": "missing"}


def test_an_answer_with_another_state_is_turned_away_and_the_right_one_still_counts(
    typed: Keyboard, home: Home, browser: BrowserOf
) -> None:
    window = browser("?code=stolen&state=guessed", "?code=stolen", "favicon.ico", "?error=access_denied")
    done = typed("connect", "google")
    window.close()
    assert [page.status_code for page in window.pages] == [400, 400, 404, 400, 200]
    assert done.code == 0
    assert kept(home) is not None


async def test_an_answer_that_comes_before_a_sign_in_waits_is_turned_away() -> None:
    async with asyncio.timeout(seconds(10)), open_redirect_server() as redirect:
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(redirect.address).port)
        writer.write(b"GET /?code=stolen HTTP/1.1\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 400 ")


def test_no_sign_in_can_be_guessed_from_another() -> None:
    attempts = [OAuthAttempt("http://127.0.0.1:1/") for _ in range(20)]
    for secrets in ({one.state for one in attempts}, {one.verifier for one in attempts}):
        assert len(secrets) == len(attempts)
        assert min(map(len, secrets)) >= 32
        assert not any(secret in repr(attempts) for secret in secrets)


def test_nobody_who_signs_in_is_waited_for_only_so_long(
    typed: Keyboard, home: Home, browser: BrowserOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webbrowser, "open", lambda _url: True)
    done = typed("connect", "google", "--wait", "1")
    assert (done.code, done.out) == (1, "")
    assert "Nobody signed in within 1 seconds." in done.err
    assert kept(home) is None


def test_no_browser_means_none(typed: Keyboard, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(url: str) -> bool:
        raise AssertionError(url)

    monkeypatch.setattr(webbrowser, "open", never)
    assert "/o/oauth2/v2/auth?client_id=client-1" in typed("connect", "google", "--no-browser", "--wait", "1").err


@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        ({"consent": {"error": "access_denied"}}, 2, "Access was not allowed at Google."),
        ({"consent": {"error": "<script>\x1b[31m"}}, 2, "Google refused the sign-in."),
        ({"consent": {"code": "another"}}, 2, "Google did not accept the sign-in."),
        ({"secret": "changed"}, 2, "does not know this client, or its secret is wrong"),
        ({"scopes": "https://www.googleapis.com/auth/calendar"}, 2, "not allowed to open the mail"),
        ({"token_error": (200, {"access_token": ACCESS})}, 1, "gave no lasting access"),
        ({"token_error": (503, {})}, 1, "Google answered 503"),
        ({"profile_status": 403}, 2, "Gmail API is not switched on"),
        ({"profile_status": 500}, 1, "did not say whose account"),
        (
            {"token_error": (200, {"refresh_token": "x", "access_token": "y", "scope": MAIL_SCOPE})},
            1,
            "did not say whose",
        ),
    ],
)
def test_what_google_refuses_is_a_sentence_and_keeps_what_was_there(
    typed: Keyboard, google: Google, home: Home, browser: BrowserOf, change: dict[str, object], code: int, words: str
) -> None:
    browser()
    assert typed("connect", "google").code == 0
    before = connection_file(home, "google").read_bytes()
    for name, value in change.items():
        setattr(google, name, value)
    done = typed("connect", "google")
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert "Traceback" not in done.err
    assert "\x1b[31m" not in done.err
    assert connection_file(home, "google").read_bytes() == before
    shows_no_secret(done, google, home)


def test_whoever_says_no_reads_so_in_the_browser(typed: Keyboard, google: Google, browser: BrowserOf) -> None:
    google.consent = {"error": "access_denied"}
    window = browser()
    assert typed("connect", "google").code == 2
    window.close()
    assert "Nothing was allowed." in window.pages[-1].text


def test_a_box_left_unticked_is_said(typed: Keyboard, google: Google, browser: BrowserOf) -> None:
    browser()
    google.scopes = next(iter(SCOPES))
    assert "Not allowed: mail filters, the calendar." in typed("connect", "google").out


def test_without_a_client_it_says_how_to_make_one(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    typed = Keyboard({}, monkeypatch)
    done = typed("connect", "google")
    assert (done.code, done.out) == (2, "")
    for word in ("console.cloud.google.com", "desktop app", "GOOGLE_CLIENT_ID", "GOOGLE_CLIENT_SECRET"):
        assert word in done.err
    assert "Client secret is missing." in typed("connect", "google", "--client-id", "x").err


def test_a_client_given_here_is_used_and_its_secret_may_be_piped(
    home: Home, google: Google, browser: BrowserOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed, _ = Keyboard({"GOOGLE_API_URL": google.url, "GOOGLE_CLIENT_ID": "other"}, monkeypatch), browser()
    assert typed("connect", "google", "--client-id", "client-1", stdin=f"{google.secret}\n").code == 0
    account = kept(home)
    assert account is not None
    assert (account.client_id, account.client_secret.get_secret_value()) == ("client-1", google.secret)


def test_a_google_that_can_not_be_reached_is_a_sentence(
    home: Home, google: Google, browser: BrowserOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = {"GOOGLE_API_URL": google.url, "GOOGLE_CLIENT_ID": "client-1", "GOOGLE_CLIENT_SECRET": google.secret}
    typed = Keyboard(known, monkeypatch)

    async def unplugged(
        _addresses: GoogleOAuthUrls, client: OAuthClient, attempt: OAuthAttempt, code: str
    ) -> OAuthGrant:
        return await exchange(GoogleOAuthUrls.from_base("http://127.0.0.1:9"), client, attempt, code)

    monkeypatch.setattr("annabelle.core.google_oauth.exchange", unplugged)
    browser()
    done = typed("connect", "google")
    assert (done.code, done.err.splitlines()[-2]) == (1, "Google can not be reached.")


def test_remove_forgets_it_here_and_withdraws_it_there(
    typed: Keyboard, google: Google, home: Home, browser: BrowserOf
) -> None:
    browser()
    assert typed("connect", "google").code == 0
    refused = typed("connect", "remove", "google", stdin="n\n")
    assert (refused.code, kept(home) is None) == (130, False)
    assert typed("connect", "remove", "google", "--json").code == 2, "a machine can not be asked"
    done = typed("connect", "remove", "google", "--yes")
    assert done.out == "The google account is forgotten here.\nGoogle has withdrawn the access too.\n"
    assert google.revoked == [REFRESH]
    assert not connection_file(home, "google").exists()
    again = typed("connect", "remove", "google", "--yes")
    assert (again.code, again.err.splitlines()[0]) == (2, "No google account is connected.")
    assert typed("connect", "remove", "facebook").code == 2


def test_what_google_does_not_confirm_is_said_with_where_to_do_it(
    typed: Keyboard, google: Google, home: Home, browser: BrowserOf
) -> None:
    browser()
    assert typed("connect", "google").code == 0
    google.revoke_status = 500
    done = typed("connect", "remove", "google", "--yes")
    assert "myaccount.google.com/permissions" in done.out
    assert kept(home) is None


def test_a_damaged_file_is_shown_and_can_be_connected_anew_or_removed(
    typed: Keyboard, home: Home, browser: BrowserOf
) -> None:
    home.connections.mkdir()
    connection_file(home, "google").write_text('{"refresh_token": "torn')
    listed = typed("connect")
    assert "its file can not be read: annabelle connect google" in listed.out
    assert "torn" not in listed.out
    browser()
    assert typed("connect", "google").code == 0
    connection_file(home, "google").write_text("")
    assert typed("connect", "remove", "google", "-y").code == 0


@pytest.mark.req("UX-01")
def test_in_a_terminal_it_counts_down_and_ctrl_c_ends_it_cleanly(
    home: Home, google: Google, terminal: Callable[..., Terminal], tmp_path: Path
) -> None:
    opener = tmp_path / "browser"
    opener.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/opened\n')
    opener.chmod(0o755)
    window = terminal(
        "connect", "google", GOOGLE_API_URL=google.url, GOOGLE_CLIENT_ID="client-1", GOOGLE_CLIENT_SECRET="s",
        BROWSER=f"{opener} %s",
    )  # fmt: skip
    window.expect(r"Waiting for you in the browser \(2\d\d s\)")
    window.expect(r"Waiting for you in the browser \(29\d s\)")
    assert (tmp_path / "opened").read_text().startswith(google.url)
    window.process.send_signal(signal.SIGINT)
    assert window.wait() == 130
    assert "Traceback" not in window.seen
    assert kept(home) is None
