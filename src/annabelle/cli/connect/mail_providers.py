"""Where well-known mail providers listen, so that an address is all most people have to know."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.connections import Door

_APP_WORD = "It wants an app password, made in the settings of your account, in place of the usual one."


@dataclass(frozen=True, slots=True)
class Provider:
    """The doors of one provider. `advice` is said when it refuses a sign-in."""

    imap: Door
    smtp: Door
    caldav: str | None = None
    advice: str | None = None
    known: bool = True


def _tls(host: str, port: int) -> Door:
    return Door(host=host, port=port, security="tls")


def _starttls(host: str, port: int = 587) -> Door:
    return Door(host=host, port=port, security="starttls")


def _usual(imap: str, smtp: str, caldav: str | None = None, advice: str | None = None) -> Provider:
    return Provider(_tls(imap, 993), _tls(smtp, 465), caldav, advice)


_GOOGLE = _usual(
    "imap.gmail.com", "smtp.gmail.com", advice=f"{_APP_WORD} With its calendar too: annabelle connect google"
)
_MICROSOFT = Provider(
    _tls("outlook.office365.com", 993),
    _starttls("smtp-mail.outlook.com"),
    advice="Microsoft lets programs sign in with a password only where the account still permits it.",
)
_APPLE = Provider(_tls("imap.mail.me.com", 993), _starttls("smtp.mail.me.com"), "https://caldav.icloud.com", _APP_WORD)
_FASTMAIL = _usual("imap.fastmail.com", "smtp.fastmail.com", "https://caldav.fastmail.com", _APP_WORD)
_GMX_ADVICE = "Reading by IMAP has to be switched on in the settings of the mailbox first."
_GMX = _usual("imap.gmx.net", "mail.gmx.net", "https://caldav.gmx.net", _GMX_ADVICE)
_YAHOO = _usual("imap.mail.yahoo.com", "smtp.mail.yahoo.com", "https://caldav.calendar.yahoo.com", _APP_WORD)
_POSTEO = _usual("posteo.de", "posteo.de", "https://posteo.de:8443")
_WEB_DE = Provider(_tls("imap.web.de", 993), _starttls("smtp.web.de"), "https://caldav.web.de", _GMX_ADVICE)

PROVIDERS: dict[str, Provider] = {
    **dict.fromkeys(("gmail.com", "googlemail.com"), _GOOGLE),
    **dict.fromkeys(("outlook.com", "hotmail.com", "live.com", "msn.com", "outlook.de"), _MICROSOFT),
    **dict.fromkeys(("icloud.com", "me.com", "mac.com"), _APPLE),
    **dict.fromkeys(("fastmail.com", "fastmail.fm"), _FASTMAIL),
    **dict.fromkeys(("gmx.de", "gmx.net", "gmx.at", "gmx.ch"), _GMX),
    "gmx.com": _usual("imap.gmx.com", "mail.gmx.com", "https://caldav.gmx.com", _GMX_ADVICE),
    **dict.fromkeys(("yahoo.com", "yahoo.de", "yahoo.co.uk", "yahoo.fr", "ymail.com"), _YAHOO),
    "aol.com": _usual("imap.aol.com", "smtp.aol.com", advice=_APP_WORD),
    **dict.fromkeys(("posteo.de", "posteo.net", "posteo.org"), _POSTEO),
    "mailbox.org": _usual("imap.mailbox.org", "smtp.mailbox.org", "https://dav.mailbox.org"),
    "web.de": _WEB_DE,
    "t-online.de": _usual("secureimap.t-online.de", "securesmtp.t-online.de"),
    "zoho.com": _usual("imap.zoho.com", "smtp.zoho.com", "https://calendar.zoho.com", _APP_WORD),
    "yandex.com": _usual("imap.yandex.com", "smtp.yandex.com", "https://caldav.yandex.com", _APP_WORD),
    "runbox.com": _usual("mail.runbox.com", "mail.runbox.com"),
}


def provider_of(domain: str) -> Provider:
    """The provider behind a domain, or the usual names of one that is not known."""
    name = domain.lower().rstrip(".")
    found = PROVIDERS.get(name)
    if found is not None:
        return found
    advice = "The names of the servers were guessed; give them with --imap and --smtp if they are others."
    return Provider(_tls(f"imap.{name}", 993), _tls(f"smtp.{name}", 465), advice=advice, known=False)
