"""Cutting a byte stream into lines."""

import pytest
from hypothesis import given, strategies as st

from annabelle.toolbox.mcp.rpc import LineBuffer, OversizedLine

LINES = st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")), max_size=20)


@given(LINES, st.lists(st.integers(min_value=1, max_value=50), max_size=50))
def test_lines_come_out_whole_however_the_bytes_come_in(lines: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    buffer, found, position = LineBuffer(limit=100), [], 0
    for cut in [*cuts, len(stream) + 1]:
        found += buffer.feed(stream[position : position + cut])
        position += cut
    assert found == lines


@given(st.integers(min_value=11, max_value=5000), st.integers(min_value=1, max_value=900))
def test_of_a_line_over_the_limit_only_its_size_and_its_edges_are_kept(size: int, chunk: int) -> None:
    text = (b"0123456789abcdefghijklm" * size)[:size]
    stream = text + b"\nnext\n"
    buffer = LineBuffer(limit=10)
    found = [line for start in range(0, len(stream), chunk) for line in buffer.feed(stream[start : start + chunk])]
    over = -(-11 // chunk) * chunk  # where the first chunk past the limit ends
    assert found == [OversizedLine(text[: min(over, 400)], text[over - chunk :][-400:], size), b"next"]


@pytest.mark.req("HUB-03")
def test_a_dropped_line_never_holds_more_than_its_edges() -> None:
    buffer = LineBuffer(limit=1000)
    for _ in range(1000):
        buffer.feed(b"x" * 1000)
    [line] = buffer.feed(b"the end\n")
    assert isinstance(line, OversizedLine)
    assert line.size == 1_000_007
    assert len(line.head) + len(line.tail) <= 800
    assert line.tail.endswith(b"the end")
