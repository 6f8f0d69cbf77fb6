"""The words by which people name their secrets, and what they say about one without telling it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from annabelle.servers.memory.folding import fold


@dataclass(frozen=True, slots=True)
class Names:
    """Names of one kind of secret: as a pattern, and the beginnings by which a text without any is told quickly."""

    pattern: str
    beginnings: tuple[str, ...]

    def may_be_in(self, lowered: str) -> bool:
        return any(beginning in lowered for beginning in self.beginnings)


def _names(text: str) -> Names:
    """Spelled the way folded text is; longer ones first, so that the whole name is read."""
    folded = sorted({fold(name.strip()).text.lower() for name in text.split(",")}, key=len, reverse=True)
    pattern = "|".join(re.escape(name).replace(r"\ ", "[ _-]?") for name in folded)
    return Names(pattern, tuple({name.split(" ")[0] for name in folded}))


def _words(text: str) -> frozenset[str]:
    return frozenset(fold(text).text.split())


PASSWORDS = _names(
    "password, passwords, passwd, pass word, pwd, passphrase, pass phrase, passwort, passwörter, kennwort, contraseña,"
    "mot de passe, mdp, senha, palavra-passe, wachtwoord, hasło, lösenord, adgangskode, passord, salasana, jelszó,"
    "şifre, пароль, 密码, 密碼, パスワード, 비밀번호, كلمة المرور, كلمة السر, סיסמה, รหัสผ่าน,"
    "पासवर्ड, mật khẩu, kata sandi"
)
AMBIGUOUS = _names("pw, pass, clave, parola, parolă, heslo")
"""Also ordinary words: what follows has to look like a password."""

CODES = _names(
    "pin, pin code, pin number, code pin, passcode, pass code, door code, gate code, alarm code, access code,"
    "safe code, lock code, entry code, unlock code, security code, verification code, login code, one time code, otp,"
    "2fa code, one time password, cvv, cvc, cvv2, safe combination, lock combination, backup code, backup codes,"
    "recovery code, recovery codes, türcode, código pin"
)
KEYS = _names(
    "api key, access key, secret key, private key, client secret, app secret, secret, secret access key, access token,"
    "auth token, bearer token, refresh token, api token, bot token, token, license key, encryption key, session cookie,"
    "api schlüssel, clé api, clave api"
)
SEEDS = _names("seed phrase, recovery phrase, mnemonic, mnemonic phrase, wiederherstellungsphrase, frase semilla")

ABOUT = _words("""
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
"""A word that is not here and ends the sentence is taken for the password itself."""
