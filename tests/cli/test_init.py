"""`annabelle init`: the first start, in a terminal and by options (FST-06)."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from annabelle.core.home import Home
from annabelle.core.settings_file import SettingsFile
from annabelle.llm.model_discovery import list_recommended
from cli.terminal import Terminal, environment, run
from support.timing import seconds

pytestmark = pytest.mark.req("FST-06", "UX-01")

NOBODY = "http://127.0.0.1:9"
GOOD_KEY = "key-that-is-accepted-41"
MODELS = {"llama2:7b": ["completion"], "qwen3:4b": ["completion", "tools"], "nomic-embed-text": ["embedding"]}


class ModelServers(ThreadingHTTPServer):
    """Ollama, LM Studio and a service with keys, as far as a first start speaks to them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answers)
        self.breaks_off = False
        self.asked: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    server: ModelServers

    def do_GET(self) -> None:
        key = self.headers.get("authorization", "").removeprefix("Bearer ") or self.headers.get("x-api-key", "")
        answers: dict[str, Any] = {
            "/api/tags": {"models": [{"name": name} for name in MODELS]},
            "/v1/models": {"data": [{"id": "qwen3:4b"}]},
        }
        self.server.asked.append(self.path)
        if self.path.endswith("/models") and key and key != GOOD_KEY:
            self._send({"error": "no such key"}, 401)
        elif self.path in answers:
            self._send(answers[self.path])
        else:
            self._send({}, 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/api/show":
            self._send({"capabilities": MODELS[body["model"]]})
            return
        self.server.asked.append(body["model"])
        lines = [{"status": "pulling", "total": 100, "completed": part} for part in (10, 60, 100)]
        lines += [{"error": "the file does not exist"}] if self.server.breaks_off else [{"status": "success"}]
        self._send("".join(json.dumps(line) + "\n" for line in lines))

    def _send(self, body: object, status: int = 200) -> None:
        data = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def servers() -> Iterator[ModelServers]:
    with ModelServers() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(seconds(10))


@pytest.fixture
def known(home: Home) -> dict[str, str]:
    """A machine without any provider."""
    plain = environment(home, OLLAMA_BASE_URL=NOBODY, LMSTUDIO_BASE_URL=f"{NOBODY}/v1", TZ="Europe/Lisbon")
    return {name: plain[name] for name in plain if not name.startswith(("THINKER_LLM", "COMPATIBLE"))}


def kept(home: Home) -> dict[str, str]:
    return SettingsFile(home.settings_file).values()


def test_a_first_start_is_guided_in_a_terminal(known: dict[str, str], home: Home, servers: ModelServers) -> None:
    screen = Terminal(known | {"OLLAMA_BASE_URL": servers.url}, "init")
    shown = screen.expect(r"Choice \[1\] ")
    assert "1  qwen3:4b at Ollama, which runs here (can use tools)" in shown
    assert "llama2:7b" in shown
    assert "nomic" not in shown, "it only makes vectors"
    assert "The packaged model" in shown
    screen.press("9\n")
    screen.expect("Please type a number")
    screen.expect("Choice")
    screen.press("\n")
    screen.expect("call you")
    screen.press("Ana\n")
    screen.expect(r"time zone\? \[Europe/Lisbon\]")
    screen.press("Mars/Olympus\n")
    screen.expect("There is no time zone 'Mars/Olympus'")
    screen.expect("time zone")
    screen.press("\n")
    screen.expect("language")
    screen.press("s\n")
    screen.expect("annabelle connect google")
    screen.expect("qwen3:4b at Ollama answers")
    screen.expect("Three things to try")
    assert screen.wait() == 0
    assert kept(home) == {
        "THINKER_LLM_PROVIDER": "ollama",
        "OLLAMA_MODEL": "qwen3:4b",
        "USER_NAME": "Ana",
        "USER_TIMEZONE": "Europe/Lisbon",
    }


def test_a_key_is_read_unseen_and_a_wrong_one_is_not_kept(
    known: dict[str, str], home: Home, servers: ModelServers
) -> None:
    screen = Terminal(known | {"GROQ_BASE_URL": f"{servers.url}/v1"}, "init")
    screen.expect("Choice")
    screen.press("1\n")
    screen.expect("Groq")
    screen.expect("Choice")
    screen.press("\n")
    screen.expect("Key of Groq")
    screen.press("wrong-key-77\n")
    screen.expect("does not accept this key")
    screen.expect("call you")
    assert kept(home) == {}
    assert "wrong-key-77" not in screen.seen
    screen.press("\x03")
    assert screen.wait() == 130
    skipped = Terminal(known | {"GROQ_BASE_URL": f"{servers.url}/v1"}, "init")
    for expected, typed in (("Choice", "1\n"), ("Choice", "\n"), ("Key of Groq", "s\n")):
        skipped.expect(expected)
        skipped.press(typed)
    skipped.expect("call you")
    assert kept(home) == {}
    skipped.close()
    left = Terminal(known | {"GROQ_BASE_URL": f"{servers.url}/v1"}, "init")
    for expected, typed in (("Choice", "1\n"), ("Choice", "\n"), ("Key of Groq: ", "\n")):
        left.expect(expected)
        left.press(typed)
    left.expect(r"Key of Groq is missing\. Nothing was changed\.")
    left.close()
    again = run(
        known | {"GROQ_BASE_URL": f"{servers.url}/v1"}, "init", "--model", "groq", "--key-stdin", stdin=f"{GOOD_KEY}\n"
    )
    assert again.returncode == 0, again.stderr
    assert "The key works" in again.stdout
    assert GOOD_KEY not in again.stdout + again.stderr
    assert kept(home) == {"GROQ_API_KEY": GOOD_KEY, "THINKER_LLM_PROVIDER": "groq"}


def test_ctrl_c_at_the_key_leaves_and_says_what_stays(known: dict[str, str], home: Home) -> None:
    screen = Terminal(known, "init", "--name", "Ana")
    for expected, typed in (("Choice", "1\n"), ("Choice", "\n"), ("Key of Groq: ", "\x03")):
        screen.expect(expected)
        screen.press(typed)
    screen.expect("What was set so far stays")
    assert screen.wait() == 130
    assert kept(home) == {"USER_NAME": "Ana"}


def test_a_model_that_can_not_answer_is_not_said_to(known: dict[str, str], home: Home, servers: ModelServers) -> None:
    nobody = run(known, "init", "--model", "ollama")
    assert "Ollama can not be reached (http://127.0.0.1:9/v1). Start Ollama" in nobody.stdout
    assert kept(home) == {"THINKER_LLM_PROVIDER": "ollama"}
    runs = known | {"OLLAMA_BASE_URL": servers.url, "GROQ_BASE_URL": f"{servers.url}/v1"}
    assert "ollama pull llama3.2" in run(runs, "init", "--model", "ollama").stdout
    assert run(runs, "init", "--model", "ollama:qwen3").stdout.startswith("\nqwen3 at Ollama answers")
    refused = run(runs | {"GROQ_API_KEY": "wrong-key-77"}, "init", "--model", "groq")
    assert "Groq refused the API key" in refused.stdout


def test_a_time_zone_may_be_written_in_any_case(known: dict[str, str], home: Home) -> None:
    for command in (("init", "--time-zone"), ("config", "set", "USER_TIMEZONE")):
        assert run(known, *command, "europe/berlin").returncode == 0
        assert kept(home) == {"USER_TIMEZONE": "Europe/Berlin"}
        assert run(known, "config", "unset", "USER_TIMEZONE").returncode == 0


def test_without_a_network_a_key_is_kept_untested(known: dict[str, str], home: Home) -> None:
    done = run(
        known | {"ANTHROPIC_BASE_URL": NOBODY}, "init", "--model", "anthropic", "--key-stdin", stdin=f"{GOOD_KEY}\n"
    )
    assert "kept untested" in done.stdout
    assert kept(home)["ANTHROPIC_API_KEY"] == GOOD_KEY
    empty = run(known | {"ANTHROPIC_BASE_URL": NOBODY}, "init", "--model", "anthropic", "--key-stdin", stdin="")
    assert "There is no key" in empty.stderr
    assert kept(home)["ANTHROPIC_API_KEY"] == GOOD_KEY, "nothing is taken away"


def test_options_ask_nothing_and_say_what_changed(known: dict[str, str], home: Home) -> None:
    options = ("--model", "packaged", "--name", "Bo", "--time-zone", "Asia/Tokyo", "--language", "German", "--json")
    told = json.loads(run(known, "init", *options).stdout)
    assert told["restart_needed"] is False
    assert "smollm2-135m answers" in told["answering"]
    assert kept(home) == {
        "THINKER_LLM_PROVIDER": "embedded",
        "USER_NAME": "Bo",
        "USER_TIMEZONE": "Asia/Tokyo",
        "USER_LANGUAGE": "German",
    }
    assert run(known, "init", "--model", "auto", "--name", "").returncode == 0
    assert kept(home) == {"USER_TIMEZONE": "Asia/Tokyo", "USER_LANGUAGE": "German"}, "a step can be repeated"


def test_without_a_terminal_nothing_is_asked(known: dict[str, str], home: Home) -> None:
    done = run(known, "init")
    assert done.returncode == 0
    assert kept(home) == {}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--model", "nonsense"), "neither a provider nor a model"),
        (("--time-zone", "Mars/Olympus"), "There is no time zone"),
        (("--model", "packaged", "--key-stdin"), "no provider is named that it belongs to"),
        (("--key-stdin",), "no provider is named that it belongs to"),
        (("--model", ""), "'' is neither a provider nor a model"),
        (("--model", "groq:"), "groq: names no model"),
        (("--model", "groq:", "--key-stdin"), "groq: names no model"),
        (("--name", "a\x07b"), "control character"),
        (("--language", "x" * 50), "USER_LANGUAGE is not valid"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(
    known: dict[str, str], home: Home, options: tuple[str, ...], words: str
) -> None:
    done = run(known, "init", *options, stdin="some-key\n")
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert kept(home) == {}


@pytest.mark.parametrize("breaks_off", [False, True])
def test_ollama_fetches_a_model_with_a_bar(
    known: dict[str, str], home: Home, servers: ModelServers, breaks_off: bool
) -> None:
    servers.breaks_off = breaks_off
    screen = Terminal(
        known | {"OLLAMA_BASE_URL": servers.url}, "init", "--name", "Ana", "--time-zone", "UTC", columns=200
    )
    shown = screen.expect(r"Choice \[1\] ")
    [number] = [line.split()[0] for line in shown.splitlines() if "Fetch a model" in line]
    screen.press(f"{number}\n")
    shown = screen.expect(r"Choice \[1\] ")
    assert "GB of memory, and" in shown
    screen.press("1\n")
    wanted = list_recommended()[0].name
    screen.expect("could not fetch" if breaks_off else "language")
    if not breaks_off:
        assert kept(home)["OLLAMA_MODEL"] == wanted
        screen.press("\n")
    else:
        assert "OLLAMA_MODEL" not in kept(home)
        screen.expect("language")
        screen.press("\n")
    assert screen.wait() == 0
    assert wanted in servers.asked


def test_the_first_chat_offers_it_once(known: dict[str, str], home: Home, terminal: Callable[..., Terminal]) -> None:
    chat = terminal()
    chat.expect(r"This is the first start\. .*\[Y/n\] ")
    chat.press("n\n")
    chat.expect("annabelle init asks again")
    chat.expect("› ")
    chat.press("\x04")
    chat.expect("Bye")
    assert chat.wait() == 0
    again = terminal()
    assert "first start" not in again.expect("› ")
    again.press("\x04")
    assert again.wait() == 0
