"""Whose certificates count: those this machine trusts, and one private authority if the person names it."""

from __future__ import annotations

import ssl
from pathlib import Path

from annabelle.core.errors import ConfigMistake

_EXPIRED = 10
_OTHER_NAMES = (62, 64)
"""As OpenSSL numbers what is wrong (X509_V_ERR_…); an address is a name too."""


def client_context(authority: str = "") -> ssl.SSLContext:
    """What a client needs to check a server. `authority` is the file with the certificate of a private authority."""
    return trusting(ssl.create_default_context(), authority)


def trusting(context: ssl.SSLContext, authority: str) -> ssl.SSLContext:
    """The same context, with a private authority beside those it trusts already."""
    if not authority:
        return context
    try:
        context.load_verify_locations(cafile=str(Path(authority).expanduser()))
    except (OSError, ValueError) as error:  # an ssl.SSLError is an OSError
        raise ConfigMistake(
            "MAIL_CA_FILE is no file with a certificate in it.",
            hint="Give the path of a PEM file: annabelle config set MAIL_CA_FILE PATH",
            field="MAIL_CA_FILE",
        ) from error
    return context


def certificate_error(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """What the libraries in between have wrapped into their own errors."""
    while error is not None and not isinstance(error, ssl.SSLCertVerificationError):
        error = error.__cause__ or error.__context__
    return error


def mistrust(server: str, error: ssl.SSLCertVerificationError) -> tuple[str, str]:
    """What is wrong with the certificate a server shows, and what to do about it."""
    if error.verify_code in _OTHER_NAMES:
        return f"{server} shows a certificate for another name.", "Check the name of the server."
    if error.verify_code == _EXPIRED:
        return f"{server} shows a certificate that has expired.", "Its operator has to renew it."
    return (
        f"{server} shows a certificate that this machine does not trust.",
        "If it is a server of your own, name the certificate of its authority: annabelle config set MAIL_CA_FILE PATH",
    )
