"""Each component writes its own log, every line with its trace, none with a secret."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from annabelle.core.secrets.redactor import MASK, Redactor
from annabelle.core.trace import configure_logging, use_trace


@pytest.fixture(autouse=True)
def _own_root_logger() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers[:]:
        root.removeHandler(handler)
        if handler not in handlers:
            handler.close()
    for handler in handlers:
        root.addHandler(handler)
    root.setLevel(level)


@pytest.mark.req("TRC-01", "TRC-03")
def test_a_line_goes_into_the_components_file_with_its_trace(tmp_path: Path):
    configure_logging("hub", tmp_path, "info", Redactor())
    with use_trace("tr_mine"):
        logging.getLogger("annabelle.hub").info("hello")
    logging.getLogger("annabelle.hub").info("outside")
    first, second = (tmp_path / "hub.log").read_text().splitlines()
    assert first.endswith("tr_mine annabelle.hub: hello")
    assert second.endswith("- annabelle.hub: outside")


@pytest.mark.req("TRC-03")
def test_a_secret_is_masked_in_messages_and_in_tracebacks(tmp_path: Path):
    configure_logging("hub", tmp_path, "info", Redactor(["lovelace1815"]))
    try:
        raise ValueError("the word is lovelace1815")
    except ValueError:
        logging.getLogger("x").exception("failed with %s", "lovelace1815")
    text = (tmp_path / "hub.log").read_text()
    assert "lovelace1815" not in text
    assert text.count(MASK) >= 2
    assert "Traceback" in text


@pytest.mark.req("TRC-03")
@pytest.mark.parametrize(("level", "lines"), [("debug", 3), ("info", 2), ("error", 1)])
def test_the_level_decides_what_is_written(tmp_path: Path, level: str, lines: int):
    configure_logging("hub", tmp_path, level, Redactor())
    log = logging.getLogger("x")
    log.debug("d")
    log.info("i")
    log.error("e")
    assert len((tmp_path / "hub.log").read_text().splitlines()) == lines


def test_a_full_disk_costs_log_lines_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    configure_logging("hub", tmp_path / "does-not-exist", "info", Redactor())
    logging.getLogger("x").info("nobody reads this")
    assert not (tmp_path / "does-not-exist").exists()


def test_without_a_folder_the_log_goes_to_stderr(capsys: pytest.CaptureFixture[str]):
    configure_logging("hub", None, "info", Redactor())
    logging.getLogger("x").info("hello")
    assert "x: hello" in capsys.readouterr().err
