"""The settings of a running hub are those it was started with, whatever this terminal has."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from annabelle.cli.hub_client import HubFile
from annabelle.cli.hub_settings import read_hub_settings
from annabelle.core.home import Home
from cli.terminal import wait_until


@pytest.fixture
def hub() -> Iterator[HubFile]:
    """A process with an environment of its own, and the note it would leave."""
    known = {
        "GROQ_MODEL": "of-the-hub",
        "MAX_CONCURRENT_TURNS": "9",
        "LLM_SUMMARY_MODEL": "",
        "PATH": os.environ["PATH"],
    }
    with subprocess.Popen(["cat"], env=known, stdin=subprocess.PIPE) as process:
        wait_until(Path(f"/proc/{process.pid}/environ").read_bytes, "a process with its environment")
        yield HubFile(pid=process.pid, url="http://127.0.0.1:9", started=datetime.now(UTC))


@pytest.mark.req("LLM-02")
def test_the_environment_of_the_hub_counts_and_this_one_does_not(
    hub: HubFile, home: Home, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GROQ_MODEL", "of-the-terminal")
    monkeypatch.setenv("GROQ_API_KEY", "gsk_of_the_terminal")
    found = read_hub_settings(home, hub)
    assert found is not None
    assert (found.groq_model, found.groq_api_key, found.max_concurrent_turns) == ("of-the-hub", None, 9)


def test_the_file_in_the_home_counts_after_the_environment(hub: HubFile, home: Home):
    home.settings_file.write_text("GROQ_MODEL=of-the-file\nUSER_NAME=Ada\nLLM_SUMMARY_MODEL=small\n")
    old = (datetime.now(UTC) - timedelta(hours=1)).timestamp()
    os.utime(home.settings_file, (old, old))
    found = read_hub_settings(home, hub)
    assert found is not None
    assert (found.groq_model, found.user_name) == ("of-the-hub", "Ada")


def test_a_file_that_changed_since_the_start_makes_it_unknown(hub: HubFile, home: Home):
    home.settings_file.write_text("USER_NAME=Ada\n")
    late = (datetime.now(UTC) + timedelta(seconds=5)).timestamp()
    os.utime(home.settings_file, (late, late))
    assert read_hub_settings(home, hub) is None


def test_a_hub_that_is_gone_or_has_a_bad_value_is_unknown(hub: HubFile, home: Home):
    home.settings_file.write_text("ANNABELLE_PORT=many\n")
    os.utime(home.settings_file, (0, 0))
    assert read_hub_settings(home, hub) is None
    assert read_hub_settings(home, hub.model_copy(update={"pid": 2**22 + 1})) is None
