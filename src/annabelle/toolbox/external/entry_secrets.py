"""Which values of an external server's entry are secrets: the user says so by the names they gave them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from annabelle.core.redact import passwords_in
from annabelle.toolbox.external.entries import External

# Wider than for our own variables: others call theirs what they like, as GITHUB_PAT or X-Auth.
_SECRET: Final = re.compile(r"auth|cookie|cred|key|pass|secret|session|signature|token|(?:^|_)pat$|(?:^|_)pwd$", re.I)
_PLACE: Final = re.compile(r"(?:file|path|dir|url|uri|host|name|id)$", re.I)
_NAMED: Final = re.compile(r"(?P<name>[\w.-]+)[\"']?\s*[:=]\s*[\"']?")
"""A name in an argument and the sign behind it: `--token=…`, `API_KEY=…`, `Authorization: …`, `"token": "…"`."""
_ENDS: Final = re.compile(r"[\"'&,;\s]")


def entry_secrets(server: External) -> Iterator[str]:
    """Of the environment, the headers (also without the scheme of `Bearer …`), the address and the arguments."""
    query = parse_qsl(urlsplit(server.url).query) if server.url is not None else []
    for name, value in (*server.env, *server.headers, *query):
        if _is_secret(name):
            yield value
            yield value.rpartition(" ")[2]
    for value in (server.url or "", *(value for _name, value in server.env)):
        yield from passwords_in(value)
    yield from argument_secrets(server.argv)


def entry_values(server: External) -> Iterator[str]:
    """Every value of the environment and the headers: only its owner knows which of them is a secret."""
    for _name, value in (*server.env, *server.headers):
        yield value
        yield value.rpartition(" ")[2]


def argument_secrets(arguments: Sequence[str]) -> Iterator[str]:
    """What a command line names a secret, in one argument or in two (`--token …`), and passwords in its addresses."""
    for argument in arguments:
        yield from passwords_in(argument)
        for named in _NAMED.finditer(argument):
            if _is_secret(named["name"]):
                value = argument[named.end() :].rstrip("\"'")
                yield from (value, value.rpartition(" ")[2], _ENDS.split(value, maxsplit=1)[0])
    for flag, value in pairwise(arguments):
        if flag.startswith("-") and not value.startswith("-") and "=" not in flag and _is_secret(flag):
            yield value


def _is_secret(name: str) -> bool:
    return _SECRET.search(name) is not None and _PLACE.search(name) is None
