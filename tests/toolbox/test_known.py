"""What came and went between two starts."""

from pathlib import Path

import pytest

from annabelle.toolbox.external.servers import KnownServers, ServerDiff


@pytest.mark.req("EXT-04")
def test_the_difference_to_the_last_start_is_named(tmp_path: Path) -> None:
    known = KnownServers(tmp_path / "last-known-mcps.json")
    assert known.compare(["a"]) == ServerDiff(), "a first start has nothing to compare with"
    known.remember({"a": 1, "b": 2})
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
    known.remember({"a": 1})
    assert known.compare(["a", "b"]).added == ("b",)


@pytest.mark.req("DIA-01")
def test_a_server_that_is_down_keeps_the_number_of_tools_it_had(tmp_path: Path) -> None:
    known = KnownServers(tmp_path / "last-known-mcps.json")
    assert known.tool_counts() is None
    known.remember({"a": 4, "b": 2})
    known.remember({"a": None, "c": None})
    assert known.tool_counts() == {"a": 4, "c": 0}
