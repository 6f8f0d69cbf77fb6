"""Opens a connection to the server for outgoing mail and signs in. All of it blocks."""

from __future__ import annotations

import base64
import smtplib
import ssl
from typing import Final

from annabelle.core.connections import MailAccount

SMTP_SECONDS: Final = 60.0
"""Seconds for an answer after sign-in. Some servers scan a mail before they accept it."""


def connect_smtp(account: MailAccount, seconds: float, context: ssl.SSLContext) -> smtplib.SMTP:
    """Connect and sign in within `seconds` for each answer. Raises what `smtplib` and `ssl` raise."""
    address = account.smtp
    server = (
        smtplib.SMTP_SSL(address.host, address.port, timeout=seconds, context=context)
        if address.security == "tls"
        else smtplib.SMTP(address.host, address.port, timeout=seconds)
    )
    try:
        if address.security == "starttls":
            server.starttls(context=context)
        server.ehlo_or_helo_if_needed()
        if server.has_extn("auth"):
            _sign_in(server, account.username, account.password.get_secret_value())
        if server.sock is not None:
            server.sock.settimeout(SMTP_SECONDS)
    except BaseException:
        server.close()
        raise
    return server


def _sign_in(server: smtplib.SMTP, username: str, password: str) -> None:
    """Sign in with any characters. The library's own method accepts ASCII only."""
    if "PLAIN" not in server.esmtp_features.get("auth", "").upper().split():
        server.login(username, password)
        return
    word = base64.b64encode(f"\0{username}\0{password}".encode()).decode()
    code, said = server.docmd("AUTH", f"PLAIN {word}")
    if code not in (235, 503):
        raise smtplib.SMTPAuthenticationError(code, said)
