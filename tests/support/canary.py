"""Looks for a text in every byte of a home, or in every cell of a database, in ways of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path

from support.postgres import connect


class Canary:
    """A text nothing else says. `stems` are what a full-text index makes of its words."""

    def __init__(self, text: str, *stems: str) -> None:
        self.text = text
        ways = {text, text.lower(), text.upper(), *stems, *(stem.upper() for stem in stems)}
        escaped = {json.dumps(way)[1:-1] for way in ways} | {json.dumps(json.dumps(way))[3:-3] for way in ways}
        self._bytes = {way.encode(code) for way in ways for code in ("utf-8", "utf-16-le", "utf-16-be")}
        self._bytes |= {way.encode() for way in escaped}
        # Without their edges, which belong to a group together with what stands around.
        self._bytes |= {
            base64.b64encode(b"\x00" * shift + way.encode())[4:-4] for way in (text, text.lower()) for shift in range(3)
        }

    def within(self, blob: bytes) -> bool:
        return any(way in blob for way in self._bytes)

    def files(self, root: Path) -> set[str]:
        """Every file that holds it, by its path below the root."""
        paths = (path for path in root.rglob("*") if path.is_file() and not path.is_symlink())
        return {str(path.relative_to(root)) for path in paths if self.within(path.read_bytes())}

    def tables(self, url: str) -> set[str]:
        """Every table of a PostgreSQL database that holds it, in any schema."""
        found: set[str] = set()
        with connect(url) as connection:
            names: Iterable[tuple[str, str]] = connection.execute(
                "SELECT table_schema, table_name FROM information_schema.tables"
                " WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
            ).fetchall()
            for schema, table in names:
                with connection.cursor().copy(f'COPY "{schema}"."{table}" TO STDOUT') as rows:  # pyright: ignore
                    # Escapes of the copy format are undone, so that JSON reads as it is stored.
                    content = b"".join(bytes(block) for block in rows).replace(b"\\\\", b"\\")
                if self.within(content):
                    found.add(f"{schema}.{table}")
        return found
