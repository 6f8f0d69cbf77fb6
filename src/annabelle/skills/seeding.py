"""Puts the default playbooks into a home, and newer ones where nobody changed them (PLB-01).

`.seeded.json` remembers each file as it was written. What still is as written is Annabelle's, and may be replaced by a
newer version; what is not is the person's, and so is the decision to have deleted one.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Collection
from pathlib import Path
from typing import Final, cast

from annabelle.core.home import write_atomically
from annabelle.skills.reading import read_playbook

_log = logging.getLogger(__name__)
DEFAULTS: Final = Path(__file__).parent / "defaults"
MANIFEST: Final = ".seeded.json"
SERVERS_WITH_PLAYBOOKS: Final = frozenset({"vercel", "posthog", "github", "neon"})
_NOT_OURS = "not a file of ours"


def default_playbooks(servers: Collection[str], defaults: Path = DEFAULTS) -> list[Path]:
    """The packaged playbooks that make sense with these servers; most need none in particular."""
    wanted: list[Path] = []
    for path in sorted(defaults.glob("*.md")):
        needed = read_playbook(path).servers
        if not needed or any(server in servers for server in needed):
            wanted.append(path)
    return wanted


def seed_playbooks(folder: Path, servers: Collection[str], defaults: Path = DEFAULTS) -> list[str]:
    """Write what is new; returns the names of the files written. OSError when the folder can not be written."""
    folder.mkdir(parents=True, exist_ok=True)
    recorded = _recorded(folder / MANIFEST)
    kept, written = dict(recorded), list[str]()
    for source in default_playbooks(servers, defaults):
        text = source.read_text(encoding="utf-8")
        target, packaged = folder / source.name, _hash(text.encode())
        standing, before = _standing(target), recorded.get(source.name)
        if standing is None and before is not None:
            continue  # the person deleted it
        if standing is None or (standing == before and standing != packaged):
            write_atomically(target, text)
            written.append(source.name)
            standing = packaged
        if standing == packaged:
            # Also when it was written by a start that was killed before it could note so.
            kept[source.name] = packaged
    if kept != recorded:
        write_atomically(folder / MANIFEST, json.dumps(dict(sorted(kept.items())), indent=2) + "\n")
    return written


def _standing(target: Path) -> str | None:
    """What is there now: the hash of a plain file, something else for a link or a folder, None for nothing."""
    if not target.is_symlink() and not target.exists():
        return None
    try:
        return _NOT_OURS if target.is_symlink() or not target.is_file() else _hash(target.read_bytes())
    except OSError:
        return _NOT_OURS


def _recorded(manifest: Path) -> dict[str, str]:
    try:
        parsed: object = json.loads(manifest.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        _log.warning("%s can not be read; playbooks that are there stay as they are", manifest)
        return {}
    return {str(name): str(value) for name, value in cast("dict[object, object]", parsed).items()}


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
