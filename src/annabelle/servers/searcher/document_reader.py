"""The worker process that reads untrusted HTML and PDF within CPU and memory limits."""

from __future__ import annotations

import codecs
import contextlib
import importlib
import json
import logging
import re
import sys

CPU_SECONDS = 20
MEMORY_BYTES = 1_500_000_000
MAX_CHARS = 3_000_000
_LIBRARIES = "annabelle.servers.searcher"


def main() -> None:
    logging.disable(logging.CRITICAL)
    given, taken = sys.stdin.buffer, sys.stdout.buffer
    while line := given.readline():
        head = json.loads(line)
        data = given.read(head["size"])
        _set_limits()
        answer = read_document(head, data)
        taken.write(json.dumps(answer).encode() + b"\n")
        taken.flush()


def read_document(head: dict[str, object], data: bytes) -> dict[str, str | None]:
    """`head` says what it is: kind (html or pdf), url, charset, links."""
    try:
        if head["kind"] == "pdf":
            pdf_text = importlib.import_module(f"{_LIBRARIES}.pdf_text")
            try:
                title, content, note = pdf_text.read_pdf(data)
            except pdf_text.NotReadable as error:
                return {"error": str(error)}
        else:
            html_markdown = importlib.import_module(f"{_LIBRARIES}.html_markdown")
            charset = head.get("charset")
            text = decode_document(data, charset if isinstance(charset, str) else None)
            title, content = html_markdown.read_html(text, str(head["url"]), links=bool(head["links"]))
            note = "Only its beginning was read." if len(text) > html_markdown.MAX_HTML_CHARS else None
    except (MemoryError, RecursionError):
        return {"error": "The document is too complicated to be read."}
    return {"title": title[:1000], "content": content[:MAX_CHARS], "note": note}


def _set_limits() -> None:
    """Limit CPU time, for this document, and memory."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        resource = importlib.import_module("resource")  # not on every system
        used = resource.getrusage(resource.RUSAGE_SELF)
        until = int(used.ru_utime + used.ru_stime) + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([A-Za-z0-9_.:\-]{1,40})""", re.IGNORECASE)
_DECLARED_WITHIN = 2048
_LATIN = ("iso8859-1", "ascii")
# Not encodings of documents; two of them take time that grows with the square of the length.
_REFUSED = frozenset({"idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined", "utf-7", "mbcs", "oem"})


def decode_document(data: bytes, charset: str | None, *, declared: bool = True) -> str:
    """The text, with � for invalid bytes. `declared`: whether to look for the charset that HTML and XML declare."""
    for mark, name in _MARKS:
        if data.startswith(mark):
            return data.decode(name, errors="replace")
    inside = _DECLARED.search(data[:_DECLARED_WITHIN]) if declared else None
    for name in (charset, inside.group(1).decode("ascii") if inside else None):
        known = _known(name)
        if known:
            return data.decode(known, errors="replace")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.end >= len(data) - 3 and error.reason == "unexpected end of data":
            return data.decode("utf-8", errors="ignore")  # cut off in the middle of a character
        return data.decode("cp1252", errors="replace")


def _known(name: str | None) -> str | None:
    try:
        known = codecs.lookup(name or "")
        b"a".decode(known.name, errors="replace")  # some codecs do not decode to text
    except (LookupError, UnicodeError):
        return None
    if known.name in _REFUSED:
        return None
    return "cp1252" if known.name in _LATIN else known.name  # as browsers do: pages that declare Latin-1 mean cp1252


if __name__ == "__main__":
    main()
