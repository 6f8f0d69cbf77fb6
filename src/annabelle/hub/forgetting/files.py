"""Goes through the files of a home: records are masked, copies deleted, exports rewritten, a person's own named."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from annabelle.core.errors import StorageTrouble
from annabelle.core.needle import Needle
from annabelle.hub.forgetting.exports import prune_export
from annabelle.hub.forgetting.lines import mask_lines
from annabelle.hub.forgetting.marker import shred
from annabelle.hub.forgetting.places import Found, Places
from annabelle.store.residue import bytes_hold, file_holds

_log = logging.getLogger(__name__)
_OWN_FILES = 5_000
_OWN_BYTES = 5_000_000
_NAMED = 50


def sweep_files(places: Places, needle: Needle, *, apply: bool) -> dict[str, int]:
    """Lines, files and copies that held the text, by place; with `apply` none does any more."""
    counts: Counter[str] = Counter()
    for found in places.files():
        try:
            counts[found.place] += _sweep(found, needle, apply=apply)
        except FileNotFoundError:
            continue  # a log that was rotated away, or a backup that a newer one replaced
        except OSError as error:
            raise StorageTrouble(
                f"{found.path.name} can not be looked through or changed: {error.strerror}.",
                hint="Fix its permissions or free some disk space, and try again.",
            ) from error
    return {place: count for place, count in counts.items() if count}


def remains(places: Places, needle: Needle) -> int:
    """Database files that hold the text in their bytes, be it in rows or in what is left of deleted ones."""
    return sum(bytes_hold(path, needle) for path in places.databases())


def own_files(places: Places, needle: Needle) -> list[str]:
    """The person's own files that hold the text; those that are very large, or too many, are not looked through."""
    return [str(path) for path in _own(places, needle)]


def _own(places: Places, needle: Needle) -> Iterator[Path]:
    named = 0
    for looked, path in enumerate(places.own()):
        if looked >= _OWN_FILES or named >= _NAMED:
            return
        try:
            if path.stat().st_size <= _OWN_BYTES and bytes_hold(path, needle):
                named += 1
                yield path
        except OSError as error:
            _log.info("A file was not looked through: %s", error.strerror)


def _sweep(found: Found, needle: Needle, *, apply: bool) -> int:
    if found.treatment == "lines":
        return mask_lines(found.path, needle, apply=apply)
    if found.treatment == "export":
        return prune_export(found.path, needle, apply=apply)
    if not file_holds(found.path, needle):
        return 0
    if apply:
        shred(found.path)
    return 1
