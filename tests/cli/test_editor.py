"""The person's own editor, when it is no editor."""

from __future__ import annotations

from pathlib import Path

import pytest

from annabelle.cli.terminal_input import edit_text
from annabelle.core.errors import CallerMistake


@pytest.mark.parametrize(
    ("editor", "sentence"),
    [
        ("nano 'unclosed", "can not be run"),
        ("{folder}", "can not be run"),
        ("false", "ended with an error"),
        ("no-such-editor-anywhere", "No editor was found"),
    ],
)
def test_an_editor_that_can_not_be_used_is_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, editor: str, sentence: str
) -> None:
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor.format(folder=tmp_path))
    with pytest.raises(CallerMistake, match=sentence):
        edit_text("words")
