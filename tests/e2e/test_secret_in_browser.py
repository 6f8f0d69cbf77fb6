"""A password is typed by the real browser: the site gets it, the model and the house do not."""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from e2e.days import MakeHub, ready, reply_after_yes
from support.canary import Canary
from support.few_servers import only
from support.op_stand_in import StandIn
from support.scripted_model import ScriptedServer, plan_text
from support.timing import seconds

SECRET = Canary("Ostrander-4482-Wimple!")
FORM = """<!doctype html><title>Sign in</title><form method="post" action="/in">
<label>Name <input name="name" autocomplete="username"></label>
<label>Word <input name="word" type="text"></label><button>Sign in</button></form>"""


@dataclass
class Site:
    """A site with a form, and what was sent to it. It repeats what it was told, as sites do."""

    address: str = ""
    got: list[dict[str, list[str]]] = field(default_factory=list)


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._say(FORM)

        def do_POST(self) -> None:
            site.got.append(parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self._say(f"<!doctype html><title>Welcome</title><p>Your word is {site.got[-1]['word'][0]}</p>")

        def _say(self, text: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    site.address = f"127.0.0.1:{server.server_address[1]}"
    yield site
    server.shutdown()
    server.server_close()
    thread.join(seconds(10))


@pytest.mark.req("POL-06", "SRV-BRW", "SRV-OPW")
def test_a_password_is_typed_into_a_page_and_written_down_nowhere(
    make_hub: MakeHub, rules: ScriptedServer, site: Site, tmp_path: Path
):
    op = StandIn(tmp_path / "op-bin")
    bank = {"id": "i1", "title": "Bank", "category": "LOGIN", "vault": {"id": "vp", "name": "Private"}}
    other = {**bank, "id": "i2", "title": "Other", "urls": [{"href": "https://other.example"}]}
    op.know(
        secrets={"op://Private/Bank/password": SECRET.text, "op://Private/Other/password": SECRET.text},
        items=[{**bank, "urls": [{"href": f"http://{site.address}/login"}]}, other],
    )
    path = f"{op.folder}:{os.environ['PATH']}"
    hub = make_hub(
        PATH=path, PRIVATE_HOSTS_ALLOWED=site.address, **only("filer", "memory", "onepassword", "web")
    ).start()
    for server in ("onepassword", "web"):
        ready(hub, server)

    def do(name: str, **arguments: object) -> str:
        return reply_after_yes(hub, plan_text([(name, arguments)], say="{result}"))

    handle = found(r"(secret://onepassword/\w+)", do("onepassword_read_secret", reference="op://Private/Bank/password"))
    do("web_browser_navigate", url=f"http://{site.address}/")
    field = found(r'textbox "Word" \[ref=(\w+)\]', do("web_browser_snapshot"))
    foreign = found(
        r"(secret://onepassword/\w+)", do("onepassword_read_secret", reference="op://Private/Other/password")
    )
    assert "belongs to https://other.example" in do("web_browser_type", ref=field, element="Word", text=foreign)
    do("web_browser_type", ref=field, element="Word", text=handle)
    assert handle in do("web_browser_snapshot"), "the field shows the handle, not what is in it"
    do("web_browser_type", ref=field, element="Word", text=handle, submit=True)
    assert site.got[-1]["word"] == [SECRET.text]
    welcome = do("web_browser_snapshot")
    assert f"Your word is {handle}" in welcome, welcome
    assert "does not take secrets" in do("web_browser_navigate", url=f"http://{site.address}/search?word={handle}")
    do("web_browser_close")
    assert not any(SECRET.within(json.dumps(one.body).encode()) for one in rules.requests)
    hub.stop()
    assert SECRET.files(hub.home.root) == set()


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, f"{pattern} is not in {text[:2000]}"
    return match[1]
