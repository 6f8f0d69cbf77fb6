"""Which values of an external server's entry are secrets: the user says so by the names they gave them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from annabelle.toolbox.external.entries import External

# Wider than for our own variables: others call theirs what they like, as GITHUB_PAT or X-Auth.
_SECRET: Final = re.compile(r"auth|cookie|cred|key|pass|secret|session|signature|token|(?:^|_)pat$|(?:^|_)pwd$", re.I)
_PLACE: Final = re.compile(r"(?:file|path|dir|url|uri|host|name|id)$", re.I)


def entry_secrets(server: External) -> Iterator[str]:
    """Of the environment, the headers (also without the scheme of `Bearer …`) and the address."""
    query = parse_qsl(urlsplit(server.url).query) if server.url is not None else []
    for name, value in (*server.env, *server.headers, *query):
        if _SECRET.search(name) and not _PLACE.search(name):
            yield value
            yield value.rpartition(" ")[2]
