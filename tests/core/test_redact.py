"""Secrets do not get into anything that is written down."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from annabelle.core.secrets.redactor import MASK, Redactor, environment_secrets, is_secret_name

SHAPED = [
    "sk-ant-" + "a1b2c3d4" * 3,
    "sk-" + "x" * 16,
    "gsk_abcdefghijklmnop1234",
    "xoxb-1234567890-abc",
    "ghp_abcdefghijklmnopqrst1234",
    "AKIAABCDEFGHIJKLMNOP",
    "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK",
]


@pytest.mark.req("TRC-03")
@pytest.mark.parametrize("secret", SHAPED)
def test_what_has_the_shape_of_a_key_is_masked(secret: str):
    assert Redactor()(f"before {secret} after") == f"before {MASK} after"


@pytest.mark.req("TRC-03")
@given(secret=st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), min_size=8, max_size=40))
def test_a_known_secret_is_masked_wherever_it_stands(secret: str):
    masked = Redactor([secret]).redact_data({"text": f"a {secret} b", "list": [secret, {"deep": (secret,)}]})
    assert secret not in str(masked).replace(MASK, "")


@pytest.mark.incident("I-30")
def test_a_field_with_a_secrets_name_is_masked_whole_and_an_empty_one_is_left():
    assert Redactor().redact_data({"API_KEY": "short", "PASSWORD": "", "name": "Ada"}) == {
        "API_KEY": MASK,
        "PASSWORD": "",
        "name": "Ada",
    }


@pytest.mark.parametrize(
    "line",
    [
        "Authorization: Bearer abcdef123456",
        "Authorization: Basic abcdef123456",
        "'Authorization': 'Bearer abcdef123456'",
        'x-annabelle-token: "abcdef123456"',
        "password=hunter2hunter2",
        "MAIL_TOKEN=abcdef123456",
    ],
)
def test_an_assigned_secret_is_masked_and_its_name_stays(line: str):
    masked = Redactor()(line)
    assert "abcdef123456" not in masked
    assert "hunter2" not in masked
    assert MASK in masked
    assert line.split(":")[0].split("=")[0] in masked


@pytest.mark.req("POL-06")
def test_the_handle_of_a_secret_is_shown_for_it_is_none():
    text = '{"text": "<secret://onepassword/mvpgoeksorzcgub5>"} secret://onepassword/mvpgoeksorzcgub5'
    assert Redactor()(text) == text
    assert MASK in Redactor()("secret://open-sesame-4711")


def test_the_password_in_an_address_is_masked_and_the_host_stays():
    assert Redactor()("postgresql://ada:lovelace99@db.local/x") == f"postgresql://{MASK}@db.local/x"


def test_a_private_key_is_masked_to_its_end():
    key = "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----"
    assert Redactor()(f"x {key} y") == f"x {MASK} y"


def test_ordinary_text_is_left_as_it_is():
    text = "The token ring of 1985; see https://example.org/a?b=c and tr_01k9zzzzzzzzzzzzzzzzzzzzzz."
    assert Redactor(["short"])(text) == text


def test_secrets_of_the_environment_are_known_by_their_names(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MAILBOX_PASSWORD", "correct horse battery")
    monkeypatch.setenv("MAILBOX_NAME", "correct horse stable")
    assert Redactor.from_environment()("correct horse battery, correct horse stable") == f"{MASK}, correct horse stable"


@pytest.mark.parametrize("name", ["GROQ_API_KEY", "token", "TELEGRAM_SESSION", "db_password", "APIKEY", "DB_PWD"])
def test_these_names_hold_secrets(name: str):
    assert is_secret_name(name)


@pytest.mark.parametrize("name", ["KEYBOARD", "TOKEN_LIMIT", "USER_NAME", "MONKEY", "PWD", "OLDPWD"])
def test_these_names_hold_none(name: str):
    assert not is_secret_name(name)


@pytest.mark.req("POL-06", "TRC-03")
@pytest.mark.incident("I-30")
def test_a_known_secret_is_found_in_every_form_it_may_come_back_in():
    secret = 'Tassibel/4406+"Ruondo"'
    redact = Redactor([secret])
    encoded = [base64.b64encode(b"x" * before + secret.encode() + b"!").decode() for before in range(3)]
    ways = [secret, secret.lower(), secret.upper(), json.dumps(secret), json.dumps(json.dumps(secret)), *encoded]
    for way in [*ways, quote(secret), quote(secret, safe=""), html.escape(secret)]:
        assert MASK in redact(f"<{way}>"), way
        assert MASK in redact.distinctive_secrets.mask(f"<{way}>"), way
        assert redact.distinctive_secrets.found_in({"deep": [{way: 1}]}), way


@pytest.mark.req("POL-06")
def test_a_password_that_is_a_word_is_masked_in_logs_and_left_in_conversations():
    redact = Redactor(["Sunshine", "12345678", "sunshine7"])
    assert redact("Sunshine 12345678") == f"{MASK} {MASK}"
    assert redact.distinctive_secrets.mask("Sunshine 12345678, sunshine7") == f"Sunshine 12345678, {MASK}"


@pytest.mark.req("POL-06")
def test_data_without_a_secret_is_the_same_object_and_data_of_any_depth_is_looked_through():
    known = Redactor(["kelmarsh-9917"]).distinctive_secrets
    plain: dict[str, object] = {"a": ["b"]}
    assert known.mask_data(plain) is plain
    deep: object = "kelmarsh-9917"
    for _ in range(5000):
        deep = [deep]
    assert known.found_in(deep)
    assert known.mask_data(deep) == MASK


@pytest.mark.req("TRC-03", "POL-06")
def test_the_password_in_an_address_is_masked_also_where_it_stands_alone() -> None:
    secrets = environment_secrets({"HTTPS_PROXY": "http://me:pass%2Fword@proxy.example:3128", "PLAIN": "a@b://c"})
    redact = Redactor(secrets)
    for form in ("pass/word", "pass%2Fword"):
        assert redact(f"no host {form} here") == f"no host {MASK} here"
    assert redact("a@b://c") == "a@b://c"
