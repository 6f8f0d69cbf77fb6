"""The process that reads one page: a line of JSON and bytes in, a line of JSON out.

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
_LIBRARIES = "annabelle.servers.searcher.reading"


def main() -> None:
    _bound()
    logging.disable(logging.CRITICAL)
    head = json.loads(sys.stdin.buffer.readline())
    answer = read(head, sys.stdin.buffer.read())
    sys.stdout.buffer.write(json.dumps(answer).encode())


def read(head: dict[str, object], data: bytes) -> dict[str, str | None]:
    """`head` says what it is: kind (html or pdf), url, charset, links."""
    try:
        if head["kind"] == "pdf":
            pdf_text = importlib.import_module(f"{_LIBRARIES}.pdf_text")
            try:
                title, content, note = pdf_text.read_pdf(data)
            except pdf_text.NotReadable as error:
                return {"error": str(error)}
            return {"title": title, "content": content, "note": note}
        decoding = importlib.import_module(f"{_LIBRARIES}.decoding")
        html_text = importlib.import_module(f"{_LIBRARIES}.html_text")
        charset = head.get("charset")
        text = decoding.decode(data, charset if isinstance(charset, str) else None)
        title, content = html_text.read_html(text, str(head["url"]), links=bool(head["links"]))
        cut = "Only its beginning was read." if len(text) > html_text.MAX_HTML_CHARS else None
    except (MemoryError, RecursionError):
        return {"error": "The document is too complicated to be read."}
    return {"title": title, "content": content, "note": cut}


def _bound() -> None:
    with contextlib.suppress(ImportError, OSError, ValueError):
        resource = importlib.import_module("resource")  # not on every system
        resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


if __name__ == "__main__":
    main()
