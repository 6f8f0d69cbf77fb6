"""The process that reads one file and exits. It limits its own resources first, because files may be hostile.

Standard input: the question as a line of JSON, then the file. Standard output: the answer, or a refusal.
"""

from __future__ import annotations

import contextlib
import logging
import resource
import signal
import sys
import warnings

from pydantic import TypeAdapter

from annabelle.core.errors import AnnabelleError
from annabelle.servers.documents.answers import answer_question
from annabelle.servers.documents.questions import AnyDocumentQuestion, WorkerRefusal

CPU_SECONDS = 30
WALL_SECONDS = 60
MEMORY_BYTES = 1_500_000_000


def main() -> None:
    _set_limits()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    source = sys.stdin.buffer
    question: AnyDocumentQuestion = TypeAdapter(AnyDocumentQuestion).validate_json(source.readline())
    try:
        answer = answer_question(question, source.read()).model_dump_json()
    except AnnabelleError as error:
        answer = WorkerRefusal(error=error.body()).model_dump_json()
    sys.stdout.buffer.write(answer.encode("utf-8", errors="replace"))


def _set_limits() -> None:
    """Set every limit that this system supports."""
    limits = (
        ("RLIMIT_CPU", CPU_SECONDS),
        ("RLIMIT_AS", MEMORY_BYTES),
        ("RLIMIT_FSIZE", 10_000_000),
        ("RLIMIT_CORE", 0),
        ("RLIMIT_NPROC", 0),
    )
    for name, most in limits:
        kind = getattr(resource, name, None)
        if kind is not None:
            with contextlib.suppress(OSError, ValueError):
                resource.setrlimit(kind, (most, most))
    signal.alarm(WALL_SECONDS)  # also when whoever asked is gone


if __name__ == "__main__":
    main()
