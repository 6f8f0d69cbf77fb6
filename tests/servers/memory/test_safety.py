"""Secrets do not get into memory, and nothing else is taken for one."""

from __future__ import annotations

import logging

import pytest
from hypothesis import given, strategies as st

from annabelle.core.errors import NotAllowed
from annabelle.core.secrets.patterns import SECRET_PATTERNS
from annabelle.core.secrets.redactor import MASK
from annabelle.servers.memory.arguments import find_secret_kind, find_secrets, mask_secrets, refuse_secret

KEY_EXAMPLES = {
    "Anthropic API key": ["sk-ant-api03-abcdefghij0123456789"],
    "OpenRouter API key": ["sk-or-v1-abcdefghij0123456789"],
    "OpenAI API key": ["sk-abcdefghijklmnop1234", "sk-proj-abcdefghijklmnop1234"],
    "Groq API key": ["gsk_abcdefghijklmnop1234"],
    "xAI API key": ["xai-abcdefghijklmnopqrst1234"],
    "Perplexity API key": ["pplx-abcdefghijklmnopqrst1234"],
    "Hugging Face token": ["hf_abcdefghijklmnopqrstuvwx"],
    "Slack token": ["xoxb-1234567890-abcdef", "xapp-1-A0123456789-abcdef"],
    "Slack webhook": ["hooks.slack.com/services/T0AAAAAAA/B0BBBBBBB/abcdefghijklmnop1234"],
    "GitHub token": ["ghp_abcdefghijklmnopqrst1234", "github_pat_11ABCDEFG0abcdefghijkl"],
    "GitLab token": ["glpat-abcdefghij1234567890"],
    "AWS key id": ["AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE"],
    "Google API key": ["AIzaSyA1234567890abcdefghijklmnopqrstu"],
    "Google access token": ["ya29.a0AfH6SMBxxxxxxxxxxxxxxx"],
    "Stripe key": ["sk_live_abcdefghij1234", "rk_test_abcdefghij1234", "whsec_abcdefghij1234567890"],
    "SendGrid API key": ["SG.abcdefghij1234567890.abcdefghij1234567890"],
    "package registry token": ["npm_abcdefghijklmnopqrstuvwxyz0123456789", "pypi-AgEIcHlwaS5vcmcCJGFiY2RlZmdoaWprbG"],
    "Notion token": ["ntn_123456789012abcdefghijklmnopqrst", "secret_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"],
    "search API key": ["tvly-abcdefghij1234567890", "BSAabcdefghijklmnopqrstuvwx12"],
    "Telegram bot token": ["123456789:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw0"],
    "JSON web token": ["eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK"],
    "private key": [
        "-----BEGIN RSA PRIVATE KEY-----\nMIIabc\n-----END RSA PRIVATE KEY-----",
        "-----BEGIN EC PRIVATE KEY-----\nMIIabc",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----",
        "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQQQQQQQ",
    ],
    "one-time password seed": ["otpauth://totp/Annabelle:ada?secret=JBSWY3DPEHPK3PXP&issuer=Annabelle"],
    "password in an address": [
        "postgres://ada:lovelace99@db.local/x",
        "mysql://root:toor@localhost:3306/app",
        "mongodb+srv://ada:pa55@cluster0.example.net",
        "redis://:pa55@localhost:6379",
    ],
}  # fmt: skip

TOLD = {
    "password": [
        "my password is hunter2",
        "My Netflix password is Sommer!Regen",
        "The user's password is swordfish.",
        "password: letmein",
        "password = qwerty",
        "passwd=abcd",
        "The wifi password: correcthorse",
        "The password for the guest wifi is sunshine99",
        "The password of my router at home is now admin123",
        "the passphrase is correct horse battery staple",
        "pwd hunter2",
        'Use "opensesame" as the password for the door',
        "hunter2 is my password",
        "His password is 'rosebud'",
        "Das WLAN-Passwort lautet Blumenkohl7",
        "Mein Kennwort ist geheimnis123",
        "Mi contraseña es gatito2020",
        "Mon mot de passe est bonjour99",
        "A minha senha é futebol10",
        "Мой пароль: корова77",
        "密码是hunter2",
        "wifi_password=abcd1234",
        "clave: gatito99",
    ],
    "PIN or access code": [
        "my PIN is 1234",
        "PIN: 0042",
        "The PIN code of the card is 4711",
        "The alarm code is 48213",
        "door code 9182#",
        "CVV 123",
        "The safe combination is 12-34-56",
        "iPhone passcode is 192837",
        "verification code: 551203",
    ],
    "secret key or token": [
        "The API key is 8f3a9c0b2d7e4f61",
        "api_key=abcdef123456",
        "Authorization: Bearer abcdef123456",
        "client secret: Zx81-kk29-aa",
        "the access token is A1b2C3d4E5f6",
        "secret=patience",
    ],
    "AWS secret key": ["wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY belongs to the build"],
    "recovery phrase": [
        "The seed phrase is witch collapse practice feed shame open despair creek road again ice least",
        "recovery phrase: witch collapse practice feed shame open",
    ],
    "card number": [
        "4111 1111 1111 1111",
        "4111-1111-1111-1111",
        "4111111111111111",
        "My Visa is 4111 1111 1111 1111 12/27 123",
        "Amex 3782 822463 10005",
        "5555555555554444",
        "6011 1111 1111 1117",
        "4222222222222",
        "The credit card number is 1234 5678 9012 3456",
    ],
    "bank account number": ["IBAN DE89 3704 0044 0532 0130 00", "GB82WEST12345698765432"],
    "id number": [
        "Her SSN is 123-45-6789",
        "social security number 123456789",
        "NI number AB 12 34 56 C",
        "DNI 12345678Z",
        "NIE X1234567L",
        "codice fiscale RSSMRA85T10A562S",
        "2 55 08 14 168 025 38",
        "CPF 529.982.247-25",
        "11010519491231002X",
        "811228-9874",
        "His passport number is C01X00T47",
        "Reisepass Nr. C01X00T478",
        "driver's license number D1234567",
    ],
}  # fmt: skip

HARMLESS = [
    "The parcel is 4539 1488 0343 6468",  # like a card, with a check digit no card has
    "The parcel is 4539148803436468",
    "I forgot my password yesterday",
    "prefers a password manager",
    "Prefers the password manager 1Password",
    "1Password is the password manager of the team",
    "The password policy is strict",
    "The password is stored in the safe",
    "Her password is too short",
    "The wifi password is on the fridge",
    "The password is secure.",
    "His passwords are all different",
    "Changed the password 2026-01-05",
    "Entered the wrong password 3 times",
    "Das Passwort ist abgelaufen",
    "Hat das Passwort vergessen",
    "La clave es la paciencia",
    "The secret is to use cold butter",
    "The secret of the sauce: patience",
    "Token ring networks fascinate her",
    "Wants at most 128000 tokens per request",
    "The API key is kept in the vault",
    "API keys rotate every 90 days",
    "Rotates the access token weekly",
    "Pinned the repository annabelle",
    "Lives near pin code 560001",
    "PIN is four digits long",
    "The dress code is smart casual, area code 415, zip code 94107",
    "Phone: +49 170 1234567",
    "Call +1 (555) 010-9999 or 555-123-4567",
    "whatsapp +4917612345678",
    "phone number 4917612345678",
    "020 7946 0958 is the office",
    "born on 1985-07-09, married 12.05.2010",
    "Meeting at 2026-05-01T12:30:45.123Z",
    "20260501T123045Z",
    "order number 112-3456789-0123456",
    "Order 302-1234567-7654321 was returned",
    "Invoice 2026-000123456789",
    "tracking number 1Z999AA10123456784",
    "EAN 4006381333931",
    "ISBN 978-3-16-148410-0",
    "git commit 77f14a5b1c0d9e8f7a6b5c4d3e2f1a0b9c8d7e6f fixed it",
    "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "uuid 123e4567-e89b-12d3-a456-426614174000",
    "Paid $1,234,567.89 and 49.99 EUR",
    "Rent is 1200 euros since 2024",
    "timestamp 1714566645123",
    "https://docs.google.com/spreadsheets/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms",
    "https://example.org:8080/path@v2 and ada@example.org",
    "task-management-system-for-everyone",
    "risk-assessment-document-2026-final",
    "The years 2010 2011 2012 2013 2014 2015 were good",
    "Runs 10.0.0.1, 192.168.178.1 and fe80::1",
    "Version 1.2.3-beta.4 of the compiler",
    "Likes hex colours such as #ff8800",
    "passport expires in 2031",
    "Her passport expires on 2031-05-17",
    "Wants to renew the id card by 2027-01-01",
    "Flight LH1234, seat 12A, booking ABC123",
    "Customer id 12345678",
    "The IBAN is in the contract folder",
    "Bevorzugt Tee; trinkt 2 Tassen am Tag",
    "喜欢喝茶，住在柏林",
]


def _cases(examples: dict[str, list[str]]) -> list[object]:
    return [pytest.param(kind, text, id=text[:40]) for kind, texts in examples.items() for text in texts]


@pytest.mark.req("MEM-05")
@pytest.mark.parametrize(("kind", "text"), _cases(KEY_EXAMPLES))
def test_a_key_is_recognised_by_its_shape_and_named_by_its_kind(kind: str, text: str):
    assert (
        find_secret_kind(f"The build uses {text} today") == kind
        if "BEGIN" not in text
        else find_secret_kind(text) == kind
    )


def test_every_kind_of_key_has_an_example():
    assert set(KEY_EXAMPLES) == {shape.kind for shape in SECRET_PATTERNS}


@pytest.mark.req("MEM-05")
@pytest.mark.parametrize(("kind", "text"), _cases(TOLD))
def test_a_secret_told_in_words_is_recognised(kind: str, text: str):
    assert kind in {secret.kind for secret in find_secrets(text)}


@pytest.mark.req("MEM-05")
@pytest.mark.parametrize("length", [300, 2_000, 50_000])
def test_a_secret_is_found_wherever_it_stands_in_a_long_text(length: int):
    words = "the garden is green " * (length // 20)
    for secret in ("my password is hunter2hunter2", "4539 1488 0343 6467", "ghp_abcdefghijklmnopqrst1234"):
        assert find_secret_kind(f"{words}. And {secret}") is not None
        assert find_secret_kind(f"{words}. And {secret}. And {words}") is not None


@pytest.mark.req("MEM-05")
@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_resembles_a_secret_is_kept(text: str):
    assert find_secret_kind(text) is None


@pytest.mark.req("MEM-05")
@pytest.mark.parametrize(
    "text",
    [
        "４１１１ １１１１ １１１１ １１１１",
        "4111\u200b1111\u200b1111\u200b1111",
        "٤١١١١١١١١١١١١١١١",
        "4111–1111–1111–1111",
        "𝟒𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏𝟏",
        "my pass\u00adword is hunter2",
        "my \uff50\uff41\uff53\uff53\uff57\uff4f\uff52\uff44 is hunter2",
        "sk\u2060-abcdefghijklmnop1234",
        "contrasen\u0303a: gatito2020",
    ],
)
def test_unicode_disguises_hide_no_secret(text: str):
    assert find_secret_kind(text) is not None


@pytest.mark.req("MEM-05")
def test_the_refusal_and_the_log_name_the_kind_and_never_the_value(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.DEBUG), pytest.raises(NotAllowed, match="holds a password") as refused:
        refuse_secret("my password is hunter2", field="fact")
    assert refused.value.field == "fact"
    assert refused.value.hint
    assert "refused a fact: it looks like it holds a password" in caplog.text
    assert "hunter2" not in caplog.text + str(refused.value) + str(refused.value.hint)


def test_a_harmless_text_is_not_refused():
    refuse_secret("Likes tea")


@pytest.mark.req("MEM-05")
def test_secrets_are_masked_in_place_and_the_rest_stays():
    masked, kinds = mask_secrets("Hi! My password is hunter2, the card ４１１１ 1111 1111 1111 works, bye")
    assert masked == f"Hi! My password is {MASK}, the card {MASK} works, bye"
    assert kinds == ("password", "card number")


@given(st.text(max_size=300))
def test_masking_holds_changes_exactly_the_texts_that_hold_a_secret(text: str):
    masked, kinds = mask_secrets(text)
    assert (masked == text) == (not kinds)


@pytest.mark.parametrize("text", [text for texts in [*KEY_EXAMPLES.values(), *TOLD.values()] for text in texts])
def test_a_masked_text_holds_no_secret_any_more(text: str):
    masked, _ = mask_secrets(f"Well, {text}")
    assert find_secrets(masked) == []


@given(before=st.text(max_size=40), after=st.text(max_size=40))
def test_a_key_is_found_whatever_is_written_around_it(before: str, after: str):
    key = "ghp_abcdefghijklmnopqrst1234"
    masked, _ = mask_secrets(f"{before} {key} {after}")
    assert key not in masked


@pytest.mark.timeout(60)
@pytest.mark.parametrize("piece", ["a ", "1 ", "password ", "x is ", "4111 ", "ab-", "a", "'"])
def test_a_long_text_of_any_pattern_is_looked_at_without_stalling(piece: str):
    assert find_secrets(piece * (100_000 // len(piece))) == []
