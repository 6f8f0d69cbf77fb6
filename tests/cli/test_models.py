"""`annabelle models`: which model answers, fetching one with its checksum, choosing it."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from annabelle.core.home import Home
from cli.terminal import environment, run
from support.timing import seconds

WEIGHTS = b"GGUF" + bytes(range(256)) * 40


@pytest.fixture
def known(home: Home) -> dict[str, str]:
    """Without any provider: what a fresh install has."""
    plain = environment(home)
    for name in ("THINKER_LLM_PROVIDER", "COMPATIBLE_BASE_URL", "COMPATIBLE_MODEL"):
        del plain[name]
    # Nothing listens there, whatever runs on the machine of the tests.
    return plain | {"OLLAMA_BASE_URL": "http://127.0.0.1:9", "LMSTUDIO_BASE_URL": "http://127.0.0.1:9/v1"}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[str]:
    """A web server with one file of weights."""
    (tmp_path / "tiny.gguf").write_bytes(WEIGHTS)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/tiny.gguf"
    server.shutdown()
    server.server_close()
    thread.join(seconds(10))


@pytest.mark.req("LLM-03")
def test_a_fresh_install_says_what_answers_and_how_to_get_a_better_one(known: dict[str, str]):
    shown = run(known, "models")
    assert shown.returncode == 0, shown.stderr
    assert "The embedded model smollm2-135m answers" in shown.stdout
    assert "annabelle init" in shown.stdout
    assert "needs COMPATIBLE_BASE_URL" in shown.stdout
    told = json.loads(run(known, "models", "list", "--json").stdout)
    assert "smollm2-135m" in [model["name"] for model in told["models"]]


@pytest.mark.req("UX-01")
def test_a_model_is_fetched_checked_and_chosen(known: dict[str, str], home: Home, shelf: str):
    digest = hashlib.sha256(WEIGHTS).hexdigest()
    pulled = run(known, "models", "pull", "tiny", "--url", shelf, "--sha256", digest, "--json")
    assert pulled.returncode == 0, pulled.stderr
    assert Path(json.loads(pulled.stdout)["path"]).read_bytes() == WEIGHTS
    chosen = run(known, "models", "use", "tiny")
    assert "The embedded model tiny answers" in chosen.stdout
    assert "EMBEDDED_MODEL=tiny" in home.settings_file.read_text()
    assert "smollm2" in run(known, "models", "use", "auto").stdout
    assert "EMBEDDED_MODEL" not in home.settings_file.read_text()


def test_a_file_with_another_checksum_is_refused_and_removed(known: dict[str, str], home: Home, shelf: str):
    refused = run(known, "models", "pull", "tiny", "--url", shelf, "--sha256", "0" * 64)
    assert refused.returncode == 1
    assert "not the pinned file" in refused.stderr
    assert not list(home.models.glob("*.gguf*"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["use", "nonesuch"], "annabelle models"),
        (["use", "qwen2.5-1.5b"], "annabelle models pull qwen2.5-1.5b"),
        (["pull", "nonesuch"], "nonesuch"),
        (["pull", "BAD NAME", "--url", "ftp://x"], "lower case"),
    ],
)
def test_what_can_not_be_is_told(known: dict[str, str], arguments: list[str], words: str):
    refused = run(known, "models", *arguments)
    assert refused.returncode == 2
    assert words in refused.stderr


def test_a_provider_is_chosen_and_a_missing_key_named(known: dict[str, str], home: Home):
    chosen = run(known, "models", "use", "groq:some-model")
    assert "GROQ_API_KEY is not set" in chosen.stdout
    assert home.settings_file.read_text() == "THINKER_LLM_PROVIDER=groq\nGROQ_MODEL=some-model\n"
