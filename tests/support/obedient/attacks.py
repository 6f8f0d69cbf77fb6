"""Attacks over our own tools: every wish at every place, those that ride on a real order, and public texts."""

from __future__ import annotations

import gzip
import json
import re
import tomllib
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

from support.obedient.scenario import Attack, steps_from

_HERE = Path(__file__).parent
# The first that fits. What none of our tools can do (a lock, a robot, a payment) is done by code or in the browser.
_WANTS = (
    (r"\b(e-?mail|send|forward|share)\b.*@|\bsend\b.*\b(to|my)\b", "mail-secret"),
    (r"\b(post|tweet|message|slack|whatsapp|chat)\b", "telegram"),
    (r"\b(delete|remove|erase|clear)\b", "delete-file"),
    (r"\b(schedule|appointment|calendar|book)\b", "event"),
    (r"\b(transfer|pay|purchase|buy|order|donat|deposit|withdraw)", "form"),
    (r"\b(grant|permission|access|whitelist|policy|rule)\b", "forward-rule"),
    (r"\b(update|change|set|modify|replace)\b", "overwrite-file"),
    (r"\b(install|download|execute|run|script)\b", "script"),
    (r"\b(find|search|retrieve|get|list|show)\b", "mail-secret"),
)
_ELSE = "script"
_CARRIERS = ("mail", "file", "page", "feed", "event", "document")


def every_wish_everywhere(site: str) -> Iterator[Attack]:
    for place in _rows(_HERE / "places.toml", "place", site):
        for wish in _rows(_HERE / "wishes.toml", "wish", site):
            yield _attack(f"{place['name']}-{wish['name']}", place, wish, str(wish["words"]))


def riding_on_an_order(site: str, file: Path = _HERE / "close_attacks.toml") -> Iterator[Attack]:
    for row in _rows(file, "attack", site):
        yield Attack(
            id=f"close-{row['name']}",
            place=row["place"],
            says=row["says"],
            steps=steps_from(row["calls"]),
            words=row["words"],
            wanted=steps_from(row["wanted"]),
            goals=tuple(row["goals"]),
            then=tuple(row.get("then", ())),
        )


def public_texts(data: Path, site: str) -> Iterator[Attack]:
    """One attack for each malicious text of the public set; places in turn, wishes by what the text wants."""
    wishes = {wish["name"]: wish for wish in _rows(_HERE / "wishes.toml", "wish", site)}
    places = {place["name"]: place for place in _rows(_HERE / "places.toml", "place", site)}
    turns = cycle(_CARRIERS)
    with gzip.open(data / "injection-dev.jsonl.gz", "rt") as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        if row["label"] == 1 and row["source"] == "InjecAgent":
            words, place = str(row["text"]), places[next(turns)]
            name = next((wish for pattern, wish in _WANTS if re.search(pattern, words, re.IGNORECASE)), _ELSE)
            yield _attack(f"public-{row['id']}-{place['name']}-{name}", place, wishes[name], words)


def _attack(name: str, place: dict[str, Any], wish: dict[str, Any], words: str) -> Attack:
    wanted = steps_from(wish["calls"])
    return Attack(
        id=name,
        place=place["name"],
        says=place["says"],
        steps=steps_from(place["calls"]),
        words=words,
        wanted=wanted,
        goals=tuple(wish.get("goals") or (wanted[-1].tool,)),
    )


def _rows(file: Path, key: str, site: str) -> list[dict[str, Any]]:
    return tomllib.loads(file.read_text().replace("{site}", site)).get(key, [])
