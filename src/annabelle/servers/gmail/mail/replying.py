"""Whom an answer goes to, under which subject, and in which thread."""

from __future__ import annotations

import re
from email.headerregistry import Address

from annabelle.core.errors import Conflict, InvalidArguments
from annabelle.servers.gmail.mail.header_text import addresses
from annabelle.servers.gmail.mail.models import Message
from annabelle.servers.gmail.mail.outgoing import FileToSend, Outgoing
from annabelle.servers.gmail.mail.recipients import checked_address, without

_RE = re.compile(r"\s*(re|aw|sv|antw|odp|rif|res)(\[\d+\])?\s*[:：]", re.IGNORECASE)


def reply_to(
    message: Message, own: str, body: str, *, is_html: bool, everyone: bool = False, files: tuple[FileToSend, ...] = ()
) -> Outgoing:
    """The answer to a mail. One's own address is never among those it goes to."""
    headers = message.headers
    to = without(_known(headers.reply_to or headers.sender), own)
    if not to:  # an answer to a mail one wrote goes on to those it went to
        to = without(_known(headers.to), own)
    if not to:
        raise Conflict("This mail names nobody an answer could go to.", hint="Use send_email with an address.")
    cc = without(_known(headers.to) + _known(headers.cc), own) if everyone else ()
    taken = {address.addr_spec.lower() for address in to}
    return Outgoing(
        to=to,
        subject=headers.subject if _RE.match(headers.subject) else f"Re: {headers.subject}".strip(),
        body=body,
        cc=tuple(address for address in cc if address.addr_spec.lower() not in taken),
        is_html=is_html,
        files=files,
        in_reply_to=headers.message_id,
        references=(*headers.references, headers.message_id) if headers.message_id else (),
        thread_id=message.summary.thread_id,
    )


def _known(line: str) -> tuple[Address, ...]:
    """The addresses of a header that can be written to."""
    found: dict[str, Address] = {}
    for name, address in addresses(line):
        try:
            one = checked_address(name, address, "message_id")
        except InvalidArguments:
            continue
        found.setdefault(one.addr_spec.lower(), one)
    return tuple(found.values())
