"""What the selection and the packaged mind are trained on: the phrases of the package, and the tools they are for."""

from __future__ import annotations

import sys
from pathlib import Path

import annabelle
from annabelle.core.tools import JsonObject
from annabelle.language.phrases import FILE_NAME, PhraseBook

PACKAGE = Path(annabelle.__file__).parent
ROOT = Path(__file__).parent.parent
SHARED = ("values.toml", "talk.toml", "follow_ups.toml")


def load_book() -> PhraseBook:
    files = [*sorted(PACKAGE.glob(f"servers/*/{FILE_NAME}")), PACKAGE / "hub" / "tools" / FILE_NAME]
    return PhraseBook.load([*files, *(PACKAGE / "language" / "en" / "phrases" / name for name in SHARED)])


def load_schemas() -> dict[str, JsonObject]:
    """The arguments of every built-in tool, from the tools themselves."""
    sys.path.append(str(ROOT / "scripts"))
    from public_surface import input_schemas  # noqa: PLC0415  it stands beside the package, not in it

    return input_schemas()
