"""Phrases that made-up attacks are put together from (guardian_phrases.toml), and whole texts (guardian_texts.toml)."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


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


def read_texts() -> dict[str, dict[str, Any]]:
    """`ordinary` texts and `attacks` by kind and language, and `values` for their slots."""
    return tomllib.loads(Path(__file__).with_name("guardian_texts.toml").read_text(encoding="utf-8"))
