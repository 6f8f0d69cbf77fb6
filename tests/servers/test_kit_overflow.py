"""Long text: its beginning is shown, the whole is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.kit.overflow import Overflow

pytestmark = pytest.mark.req("SRV-ALL")


@pytest.fixture
def overflow(config: FilesConfig) -> Overflow:
    return Overflow(Workspace(config))


async def test_text_that_fits_is_shown_and_not_kept(overflow: Overflow, workspace: Path) -> None:
    shown = await overflow.show_text("grüße", 5, "page.md")
    assert (shown.text, shown.total_chars, shown.rest) == ("grüße", 5, None)
    assert not (workspace / "temp/results").exists()


async def test_one_character_too_many_is_cut_and_the_whole_is_kept(overflow: Overflow, workspace: Path) -> None:
    shown = await overflow.show_text("grüße!", 5, "page.md")
    assert (shown.text, shown.total_chars) == ("grüße", 6)
    assert shown.rest is not None
    assert (workspace / shown.rest).read_text() == "grüße!"


async def test_the_whole_of_a_longer_text_can_be_read(overflow: Overflow, workspace: Path) -> None:
    text = "zeile ä\n" * 1000 + "\ud800"
    shown = await overflow.show_text(text, 10, "../page.md")
    assert (shown.text, shown.total_chars) == (text[:10], len(text))
    assert shown.rest is not None
    assert shown.rest.startswith("temp/results/")
    assert shown.rest.endswith("page.md")
    assert (workspace / shown.rest).read_text() == text.replace("\ud800", "?")


async def test_two_results_at_once_are_two_files(overflow: Overflow) -> None:
    first, second = await overflow.show_text("a" * 9, 1, "x.txt"), await overflow.show_text("b" * 9, 1, "x.txt")
    assert first.rest != second.rest


async def test_a_result_is_shown_even_if_the_rest_can_not_be_kept(overflow: Overflow, workspace: Path) -> None:
    (workspace / "temp").mkdir(parents=True)
    (workspace / "temp/results").write_text("in the way")
    shown = await overflow.show_text("long" * 100, 4, "x.txt")
    assert (shown.text, shown.total_chars, shown.rest) == ("long", 400, None)
