"""What came and went between two starts."""

from pathlib import Path

import pytest

from annabelle.toolbox.external.servers import KnownServers, ServerDiff


@pytest.mark.req("EXT-04")
def test_the_difference_to_the_last_start_is_named(tmp_path: Path) -> None:
    known = KnownServers(tmp_path / "last-known-mcps.json")
    assert known.compare(["a"]) == ServerDiff(), "a first start has nothing to compare with"
    known.remember(["a", "b"])
    diff = known.compare(["b", "c"])
    assert diff == ServerDiff(added=("c",), removed=("a",))
    assert diff.sentence() == "New servers: c. Servers that are gone: a."
    assert not known.compare(["b", "a"])


@pytest.mark.parametrize("text", ["", "{", '{"servers": 3}', "[]"])
def test_a_damaged_file_is_like_none(tmp_path: Path, text: str) -> None:
    path = tmp_path / "last-known-mcps.json"
    path.write_text(text)
    known = KnownServers(path)
    assert known.compare(["a"]) == ServerDiff()
    known.remember(["a"])
    assert known.compare(["a", "b"]).added == ("b",)
