"""Finds passwords and codes in sentences: "my password is …", "das WLAN-Passwort lautet …", "PIN 1234"."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from annabelle.core.secrets.patterns import ASSIGNED_SECRET
from annabelle.core.text import fold_with_positions


@dataclass(frozen=True, slots=True)
class SecretNames:
    """Names of one kind of secret, as a pattern, and their beginnings for a quick check."""

    pattern: str
    beginnings: tuple[str, ...]

    def may_be_in(self, lowered: str) -> bool:
        return any(beginning in lowered for beginning in self.beginnings)


def _parse_names(text: str) -> SecretNames:
    """Folds the names and puts longer ones first, so that the whole name matches."""
    folded = sorted({fold_with_positions(name.strip()).text.lower() for name in text.split(",")}, key=len, reverse=True)
    pattern = "|".join(re.escape(name).replace(r"\ ", "[ _-]?") for name in folded)
    return SecretNames(pattern, tuple({name.split(" ")[0] for name in folded}))


def _parse_words(text: str) -> frozenset[str]:
    return frozenset(fold_with_positions(text).text.split())


PASSWORDS = _parse_names(
    "password, passwords, passwd, pass word, pwd, passphrase, pass phrase, passwort, passwörter, kennwort, contraseña,"
    "mot de passe, mdp, senha, palavra-passe, wachtwoord, hasło, lösenord, adgangskode, passord, salasana, jelszó,"
    "şifre, пароль, 密码, 密碼, パスワード, 비밀번호, كلمة المرور, كلمة السر, סיסמה, รหัสผ่าน,"
    "पासवर्ड, mật khẩu, kata sandi"
)
AMBIGUOUS = _parse_names("pw, pass, clave, parola, parolă, heslo")
"""Also ordinary words, so the value has to look like a password."""

CODES = _parse_names(
    "pin, pin code, pin number, code pin, passcode, pass code, door code, gate code, alarm code, access code,"
    "safe code, lock code, entry code, unlock code, security code, verification code, login code, one time code, otp,"
    "2fa code, one time password, cvv, cvc, cvv2, safe combination, lock combination, backup code, backup codes,"
    "recovery code, recovery codes, türcode, código pin"
)
KEYS = _parse_names(
    "api key, access key, secret key, private key, client secret, app secret, secret, secret access key, access token,"
    "auth token, bearer token, refresh token, api token, bot token, token, license key, encryption key, session cookie,"
    "api schlüssel, clé api, clave api"
)
SEEDS = _parse_names("seed phrase, recovery phrase, mnemonic, mnemonic phrase, wiederherstellungsphrase, frase semilla")

NON_VALUE_WORDS = _parse_words("""
    a about above again all almost already also always an and another any at available bad based because been before
    being below best better between both but by called can case common complex complicated correct default different
    difficult do does done due each easier easy either empty enough even every everywhere fine for forgotten from gone
    good great guessable hard has have he her here hers his how i if important impossible in incorrect invalid is it its
    just kept known less like long longer lost made mandatory manager many maybe me mine more most much my never new no
    none not nothing now obvious of off often old on once one only optional or our ours out over overdue own per please
    poor predictable private public random safe same secret secure sensitive set she short shown similar simple so some
    somewhere stolen strong stronger such than that the their theirs them then there these they this those to today
    tomorrow too trivial two under unique unknown unsafe up useful valid very via visible was we weak weaker well were
    what when where which who why with within without written wrong yes yesterday yet you your
    abgelaufen alt auf bei bekannt das dem den der die ein eine einfach falsch geheim gespeichert gut im immer in kurz
    lang meist mir nicht neu noch sehr sicher so unbekannt unsicher vergessen von wie zu
    algo buena correcta débil el en es fuerte incorrecta la larga mala mi muy no nueva olvidada segura su tan una
    au ce dans est expiré faible fort le long mauvais mon oublié pas perdu sûr trop très un une
    """)  # fmt: skip
"""Any other word that ends the sentence counts as the password."""


PASSWORD = "password"  # noqa: S105  the kind's name
CODE = "PIN or access code"
SEED = "recovery phrase"
KEY = "secret key or token"
AWS_SECRET = "AWS secret key"  # noqa: S105  the kind's name

_IS = r"(?:is|are|was|be|equals|becomes|to|ist|lautet|war|es|est|e|era|esta|ar|er|on|to jest|это)"
# "for the guest wifi", "of my router", "am Server": the owner of a secret, between its name and its value.
_WHOSE = r"(?:[ ]+(?:for|of|to|at|on|in|fur|vom|von|des|der|am|de|del|du|da|do|para|per|til)\b[^\n.:=;!?]{1,40}?)?"
_VERB = rf"[ \t]+(?P<verb>{_IS})\b[: \t]+(?:now |still |set to |jetzt )?|[ \t]*[是는은は][ \t]*"
_SAID = rf"[ \t]*(?P<sign>[:=]|->)[ \t]*|{_VERB}"
_BETWEEN = rf"(?:{_WHOSE}(?:[ \t]+(?:now|currently|still|jetzt)\b)?(?:{_SAID})|[ \t]+(?P<bare>))"
_VALUE = r"(?P<quote>[\"'`]?)(?P<value>[^\s\"'`,;]+)"


def _compile_statement(names: SecretNames, value: str = _VALUE) -> re.Pattern[str]:
    # A prefix may be joined to the name ("wifi_password", "WLAN-Passwort"); a suffix makes it another word.
    return re.compile(rf"(?i)(?<![a-z])(?:{names.pattern})(?![a-z]){_BETWEEN}{value}")


_PASSWORD, _AMBIGUOUS, _CODE, _KEY = (
    _compile_statement(PASSWORDS),
    _compile_statement(AMBIGUOUS),
    _compile_statement(CODES),
    _compile_statement(KEYS),
)
_SEED = _compile_statement(SEEDS, r"(?P<value>(?:[a-z]+[ ,]+){5,}[a-z]+)")
_AFTER = re.compile(
    rf"(?i)(?P<quote>[\"'`]?)(?P<value>[^\s\"'`,;:]{{4,60}})(?P=quote)[ ]+(?:is|as|ist|als|es|como|est|comme)[ ]+"
    rf"(?:[a-z]+(?:'s)?[ ]+){{0,3}}(?:{PASSWORDS.pattern}|{CODES.pattern})"
    r"(?=[ ]*(?:$|[.,;!?)]|(?:for|of|to|on|at|in)\b))"
)
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+=_.-])[A-Za-z0-9+][A-Za-z0-9/+]{39}(?![A-Za-z0-9/+=_-])")
_MIXED = (re.compile("[a-z]"), re.compile("[A-Z]"), re.compile(r"\d"))
_DATE_OR_TIME = re.compile(r"\d{4}-\d\d(?:-\d\d.*)?|\d{1,2}[./]\d{1,2}[./]\d{2,4}|\d{1,2}:\d\d.*|(?:19|20)\d\d")
_PARTICIPLE = re.compile(r"[a-z]+(?:ly|ed|ing)|(?:ge|be|ver|zuruck)[a-z]+(?:t|en)")
_ENDS_HERE = re.compile(r"\s*(?:$|[.!?\n,;)])")
_PHRASE = re.compile(r"(?: [a-z]+){2,7}(?=[.!?\n,;)]|\s*$)")

FoundSecrets = Iterator[tuple[str, int, int]]


def find_in_prose(text: str) -> FoundSecrets:
    """Yields the kind of every secret told in words, and the start and end of its value."""
    lowered = text.lower()
    for kind, names, pattern, is_one in _RULES:
        if names.may_be_in(lowered):
            for match in pattern.finditer(text):
                if is_one(match):
                    yield kind, match.start("value"), match.end("value")
    for match in ASSIGNED_SECRET.finditer(text):
        if _looks_generated(_strip_punctuation(match[3])):
            yield KEY, match.start(3), match.end(3)
    for match in _AWS_SECRET.finditer(text):
        if all(part.search(match[0]) for part in _MIXED) and re.search("[a-z]{8}", match[0]) is None:
            yield AWS_SECRET, match.start(), match.end()


def _is_password(match: re.Match[str]) -> bool:
    value = _strip_punctuation(match["value"])
    if not value or _DATE_OR_TIME.fullmatch(value):
        return False
    if _looks_generated(value):
        return True
    if match["bare"] is not None:
        return False
    if match["quote"]:
        return True
    if (phrase := _PHRASE.match(match.string, match.end("value"))) and NON_VALUE_WORDS.isdisjoint(
        phrase[0].lower().split()
    ):
        return True  # words that form no sentence are probably a passphrase
    if len(value) < 3 or value.lower() in NON_VALUE_WORDS or _PARTICIPLE.fullmatch(value.lower()):
        return False
    return match["sign"] is not None or _ENDS_HERE.match(match.string, match.end("value")) is not None


def _is_likely_password(match: re.Match[str]) -> bool:
    return match["bare"] is None and _looks_generated(_strip_punctuation(match["value"]))


def _is_code(match: re.Match[str]) -> bool:
    value = _strip_punctuation(match["value"])
    if re.search(r"(?i)pin[ _-]?code", match[0]) and re.fullmatch(r"[1-9]\d{5}", value):
        return False  # Indian postal codes are called PIN codes
    return re.fullmatch(r"(?!\d{4}-\d\d-)(?=.*\d{3})[\w#*-]{3,16}|\d{1,3}-\d{1,3}-\d{1,3}", value) is not None


def _is_key(match: re.Match[str]) -> bool:
    value = _strip_punctuation(match["value"])
    if match["sign"] == "=":
        return len(value) >= 4 and value.lower() not in NON_VALUE_WORDS
    return len(value) >= 8 and _looks_generated(value)


def _is_named_after(match: re.Match[str]) -> bool:
    return bool(match["quote"]) or _looks_generated(_strip_punctuation(match["value"]))


def _strip_punctuation(value: str) -> str:
    return value.strip("().,!?:;<>[]{}\"'`*")


def _looks_generated(value: str) -> bool:
    """Whether it is not a natural word: digits or symbols among letters, or at least four digits."""
    if _DATE_OR_TIME.fullmatch(value) or "://" in value:
        return False
    letters, digits = sum(c.isalpha() for c in value), sum(c.isdigit() for c in value)
    signs = sum(not c.isalnum() and c not in "-'./_&" for c in value)
    return (letters > 0 and (digits + signs) > 0 and len(value) >= 4) or digits >= 4


def _accept_any(match: re.Match[str]) -> bool:
    return True


_RULES = (
    (PASSWORD, PASSWORDS, _PASSWORD, _is_password),
    (PASSWORD, PASSWORDS, _AFTER, _is_named_after),
    (PASSWORD, AMBIGUOUS, _AMBIGUOUS, _is_likely_password),
    (CODE, CODES, _CODE, _is_code),
    (KEY, KEYS, _KEY, _is_key),
    (SEED, SEEDS, _SEED, _accept_any),
)
