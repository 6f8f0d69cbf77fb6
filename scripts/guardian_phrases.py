"""The phrases that made-up attacks are put together from; they stand in guardian_phrases.toml."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Phrases:
    """Lists to draw from."""

    goals: list[str]
    sayings: list[str]
    frames: list[str]
    plain_frames: list[str]
    personas: list[str]
    aliases: list[str]
    evils: list[str]
    payloads: list[str]
    payload_frames: list[str]
    ask_decode: list[str]
    requests: list[str]
    questions: list[str]
    fillers: dict[str, list[str]]
    languages: dict[str, list[str]]
    letters: dict[str, list[str]]


def read_phrases() -> Phrases:
    return Phrases(**tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")))
