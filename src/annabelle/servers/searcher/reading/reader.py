"""The process that reads documents: a line of JSON and bytes in, a line of JSON out, until its input ends.

Pages come from strangers, and no parser is safe from the one written to keep it busy. Here the system ends what takes
too long or too much, and the libraries' memory goes back with the process.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import logging
import sys

CPU_SECONDS = 20
MEMORY_BYTES = 1_500_000_000
MAX_CHARS = 3_000_000
_LIBRARIES = "annabelle.servers.searcher.reading"


def main() -> None:
    logging.disable(logging.CRITICAL)
    given, taken = sys.stdin.buffer, sys.stdout.buffer
    while line := given.readline():
        head = json.loads(line)
        data = given.read(head["size"])
        _bound()
        answer = read(head, data)
        taken.write(json.dumps(answer).encode() + b"\n")
        taken.flush()


def read(head: dict[str, object], data: bytes) -> dict[str, str | None]:
    """`head` says what it is: kind (html or pdf), url, charset, links."""
    try:
        if head["kind"] == "pdf":
            pdf_text = importlib.import_module(f"{_LIBRARIES}.pdf_text")
            try:
                title, content, note = pdf_text.read_pdf(data)
            except pdf_text.NotReadable as error:
                return {"error": str(error)}
        else:
            decoding = importlib.import_module(f"{_LIBRARIES}.decoding")
            html_text = importlib.import_module(f"{_LIBRARIES}.html_text")
            charset = head.get("charset")
            text = decoding.decode(data, charset if isinstance(charset, str) else None)
            title, content = html_text.read_html(text, str(head["url"]), links=bool(head["links"]))
            note = "Only its beginning was read." if len(text) > html_text.MAX_HTML_CHARS else None
    except (MemoryError, RecursionError):
        return {"error": "The document is too complicated to be read."}
    return {"title": title[:1000], "content": content[:MAX_CHARS], "note": note}


def _bound() -> None:
    """From now on so much time of the processor, for this document, and so much memory."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        resource = importlib.import_module("resource")  # not on every system
        used = resource.getrusage(resource.RUSAGE_SELF)
        until = int(used.ru_utime + used.ru_stime) + CPU_SECONDS
        resource.setrlimit(resource.RLIMIT_CPU, (until, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


if __name__ == "__main__":
    main()
