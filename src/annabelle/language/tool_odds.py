"""The odds that a message asks for each built-in tool, or for none, from its words and letters (FST-03).

A linear model over hashed features, trained by `make train-selector` on the phrases. Its weights name the tools they
were trained for.
"""

from __future__ import annotations

import itertools
import logging
import re
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from annabelle.language.lexicon import load_lexicon

BUCKETS: Final = 1 << 16
NO_TOOL: Final = ""
"""The name under which the odds of no tool stand."""
_MAX_CHARACTERS: Final = 2_000
_LEAST_KNOWN, _FEWEST_LETTERS = 0.55, 3
_FORMS: Final = (
    (
        re.compile(r"https?://\S+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|example|io|dev|info|co|eu|uk|de|fr|pl)\b\S*"),
        " urlx ",
    ),
    (re.compile(r"\S+@\S+\.\w+"), " mailx "),
    (re.compile(r"[\w/.-]+\.(?:pdf|docx?|pptx?|xlsx?|eml|od[tsp]|rtf|epub)\b"), " docx "),
    (re.compile(r"[\w/.-]+\.(?:png|jpe?g|gif|heic|webp|svg|bmp|tiff?)\b"), " imagex "),
    (re.compile(r"[\w/.-]+\.(?:zip|tar|gz|tgz|7z|rar)\b"), " archivex "),
    (re.compile(r"[\w/.-]+\.(?:txt|md|csv|json|py|ya?ml|log|html?|toml|js|ts|xml|ini|sh|sql|css)\b"), " filex "),
    (re.compile(r"[\w/-]+\.[a-z]\w{1,4}\b"), " datax "),
    (re.compile(r"\d"), "0"),
)
_CLEAR: Final = 0.95
_SHORTEST_STEP: Final = 2
_MOST_JOINTS: Final = 8
_QUOTED: Final = re.compile(r""" "[^"]*"|'[^']*'(?!\w)|“[^”]*”|‘[^’]*’|«[^»]*» """, re.VERBOSE)
WEIGHTS: Final = Path(__file__).parent / "en" / "tool_odds.npz"
_WORD: Final = re.compile(r"\w+|[^\w\s]")
_log = logging.getLogger(__name__)


def split_words(text: str) -> list[str]:
    """The words and signs of a message; addresses, files and numbers are words that say only what they are."""
    plain = unicodedata.normalize("NFKC", text[:_MAX_CHARACTERS]).lower().replace("’", "'")
    for pattern, word in _FORMS:
        plain = pattern.sub(word, plain)
    return _WORD.findall(plain)


def features(words: list[str], after: str = "") -> NDArray[np.int64]:
    """Buckets of the words, pairs of words and pieces of words, each once; and of words after the tool `after`."""
    told = [f"{after}|{word}" for word in ("", *words)] if after else []
    return buckets((*_pieces(words), *told))


def buckets(pieces: Iterable[str]) -> NDArray[np.int64]:
    return np.fromiter({_bucket(piece) for piece in pieces}, np.int64)


def _bucket(piece: str) -> int:
    return zlib.crc32(piece.encode()) % BUCKETS


def _pieces(words: list[str]) -> Iterator[str]:
    padded = ["<", *words, ">"]
    yield from words
    for first, second in itertools.pairwise(padded):
        yield f"{first} {second}"
    for first, second, third in zip(padded, padded[1:], padded[2:], strict=False):
        yield f"{first} {second} {third}"
    for word in words:
        edged = f"<{word}>"
        for size in (3, 4, 5):
            for start in range(len(edged) - size + 1):
                yield "#" + edged[start : start + size]


@dataclass(frozen=True, slots=True)
class ToolOdds:
    """Weights in memory: features to a few dimensions, and those to tools."""

    names: tuple[str, ...]
    words: NDArray[np.bool_]
    """The buckets of all words it was trained on."""
    pieces: NDArray[np.int8]
    piece_scale: float
    tools: NDArray[np.float32]
    bias: NDArray[np.float32]

    @classmethod
    def load(cls, file: Path) -> Self:
        with file.open("rb") as opened, np.load(opened) as stored:
            return cls(
                tuple(str(name) for name in stored["names"]),
                np.unpackbits(stored["words"]).astype(np.bool_),
                stored["pieces"],
                float(stored["piece_scale"]),
                stored["tools"].astype(np.float32),
                stored["bias"].astype(np.float32),
            )

    def __call__(self, text: str, after: str = "") -> Mapping[str, float]:
        """The probability of each tool it knows, and of none under `NO_TOOL`.

        Nothing where most words are unknown, as in another language. `after` is the tool of the message before.
        """
        words = split_words(text)
        if not words:
            return {NO_TOOL: 1.0}
        letters = [word for word in words if word.isalpha()]
        judged = letters if len(letters) >= _FEWEST_LETTERS else words
        if self.words[[_bucket(word) for word in judged]].mean() < _LEAST_KNOWN:
            return {}
        found = features(words, after)
        mean = self.pieces[found].sum(axis=0, dtype=np.float32) * np.float32(self.piece_scale / np.sqrt(len(found)))
        scores = mean @ self.tools + self.bias
        scores = np.exp(scores - scores.max())
        return dict(zip(self.names, (scores / scores.sum()).tolist(), strict=True))

    def steps(self, text: str, after: str = "") -> list[Step]:
        """The parts of a message that each clearly ask for a tool, or the message as one.

        Two parts that ask for the same tool are one, unless a word joins them: people explain what they ask for.
        """
        parts: list[str] = []
        end = 0
        for joint in _find_joints(text[:_MAX_CHARACTERS]):
            left = self._clear_tool(text[end : joint.start()])
            right = self._clear_tool(_first_part(text[joint.end() :])) if left else NO_TOOL
            if right and (left != right or joint[0].strip(" ,").isalpha()):
                parts.append(text[end : joint.start()])
                end = joint.end()
        whole = [*parts, text[end:]]
        return [Step(part.strip(), self(part, after if not place else "")) for place, part in enumerate(whole)]

    def _clear_tool(self, text: str) -> str:
        """The tool that a text clearly asks for, if it does."""
        odds: Mapping[str, float] = self(text) if len(split_words(text)) >= _SHORTEST_STEP else {}
        best = max(odds, key=odds.__getitem__, default=NO_TOOL)
        return best if best and odds[best] >= _CLEAR else NO_TOOL


@dataclass(frozen=True, slots=True)
class Step:
    """A part of a message, and the odds of the tools it may ask for."""

    text: str
    odds: Mapping[str, float]


def _find_joints(text: str) -> list[re.Match[str]]:
    """Where one part of a message may end and another begin; never inside quotes or behind a colon."""
    text = text.partition(": ")[0]
    quoted = [found.span() for found in _QUOTED.finditer(text)]
    return [found for found in _joint_pattern().finditer(text) if not any(a <= found.start() < b for a, b in quoted)][
        :_MOST_JOINTS
    ]


def _first_part(text: str) -> str:
    joints = _find_joints(text)
    return text[: joints[0].start()] if joints else text


@cache
def _joint_pattern() -> re.Pattern[str]:
    words = rf"(?:{'|'.join(load_lexicon('selection').phrases('joints'))})"
    return re.compile(rf"(?:[.!?;]+\s+|\n\s*)(?:{words}\s+)*|,?\s+{words}(?:,?\s+{words})*,?\s+", re.IGNORECASE)


@cache
def packaged_tool_odds() -> ToolOdds | None:
    """Those of the package; None where they are missing or damaged, and tools are ranked without them."""
    try:
        return ToolOdds.load(WEIGHTS)
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        _log.warning("The learned selection is not used, because %s is missing or damaged: %s", WEIGHTS.name, error)
        return None
