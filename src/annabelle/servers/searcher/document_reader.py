"""The worker process that reads untrusted HTML and PDF within CPU and memory limits."""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import sys

from annabelle.servers.kit.charset import decode_text

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
    description = ""
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
            text = decode_text(data, charset if isinstance(charset, str) else None, declared=True)
            links = bool(head["links"])
            title, description, content = html_markdown.read_html(text, str(head["url"]), links=links)
            note = "Only its beginning was read." if len(text) > html_markdown.MAX_HTML_CHARS else None
    except (MemoryError, RecursionError):
        return {"error": "The document is too complicated to be read."}
    return {"title": title[:1000], "description": description[:2000], "content": content[:MAX_CHARS], "note": note}


def _set_limits() -> None:
    """Limit CPU time, for this document, and memory."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        resource = importlib.import_module("resource")  # not on every system
        used = resource.getrusage(resource.RUSAGE_SELF)
        until = int(used.ru_utime + used.ru_stime) + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


if __name__ == "__main__":
    main()
