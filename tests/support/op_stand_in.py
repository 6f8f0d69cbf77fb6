"""An `op` of our own: a script on PATH that answers from a JSON file and records each call."""

from __future__ import annotations

import json
import sys
from pathlib import Path

PASSWORD = 'corr3ct-h0rse "battery" stäple'
NOTE = "recovery codes: 1111-2222-3333"
CARD = "4111111111111111"

_SCRIPT = """#!{python} -S
import json, os, sys, time
here = os.path.dirname(os.path.abspath(__file__))
state = json.load(open(os.path.join(here, "state.json")))
with open(os.path.join(here, "calls.jsonl"), "a") as calls:
    calls.write(json.dumps({{"argv": sys.argv[1:], "env": sorted(os.environ)}}) + "\\n")
if state.get("hang"):
    open(os.path.join(here, "hanging"), "w").write(str(os.getpid()))
    time.sleep(600)
if "raw" in state:
    sys.stdout.write(state["raw"])
    sys.exit(state.get("code", 0))
if "complaint" in state:
    sys.stderr.write("[ERROR] 2026/11/15 12:00:00 " + state["complaint"] + "\\n")
    sys.exit(1)
words = [word for word in sys.argv[1:] if not word.startswith("--")]
options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
def say(what):
    sys.stdout.write(json.dumps(what) if options.get("format") == "json" else what)
    sys.exit(0)
def fail(text):
    sys.stderr.write("[ERROR] 2026/11/15 12:00:00 " + text + "\\n")
    sys.exit(1)
if words[:2] == ["account", "list"]:
    say(state["accounts"])
if words[:2] == ["vault", "list"]:
    say(state["vaults"])
if words[:2] == ["item", "list"]:
    inside = [item for item in state["items"] if options["vault"] in item["vault"].values()]
    kinds = [kind.upper().replace(" ", "_") for kind in options.get("categories", "").split(",") if kind]
    chosen = [item for item in inside if not kinds or item["category"] in kinds]
    say([{{key: value for key, value in item.items() if key != "fields"}} for item in chosen])
if words[:2] == ["item", "get"]:
    hits = [item for item in state["items"] if words[2] in (item["id"], item["title"])
            and options.get("vault", item["vault"]["id"]) in item["vault"].values()]
    if len(hits) > 1:
        fail("More than one item matches " + words[2])
    say(hits[0]) if hits else fail('"' + words[2] + '" isn\\'t an item.')
if words[:1] == ["read"]:
    say(state["secrets"][words[1]]) if words[1] in state["secrets"] else fail("could not find item " + words[1])
fail("unknown command")
"""


class StandIn:
    """The folder with the executable, what it knows, and what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.path = folder / "op"
        self.path.write_text(_SCRIPT.format(python=sys.executable))
        self.path.chmod(0o755)
        self.know()

    def know(self, **changes: object) -> None:
        """What it answers from now on."""
        state = {"accounts": [{"email": "ann@example.test"}], "vaults": VAULTS, "items": ITEMS, "secrets": SECRETS}
        (self.folder / "state.json").write_text(json.dumps(state | changes))

    @property
    def calls(self) -> list[list[str]]:
        return [entry["argv"] for entry in self._entries()]

    @property
    def environments(self) -> list[list[str]]:
        return [entry["env"] for entry in self._entries()]

    def _entries(self) -> list[dict[str, list[str]]]:
        file = self.folder / "calls.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


VAULTS = [
    {"id": "vp", "name": "Private", "items": 3, "content_version": 7},
    {"id": "vw", "name": "Büro & Co", "items": 1},
]
_PRIVATE = {"id": "vp", "name": "Private"}
ITEMS: list[dict[str, object]] = [
    {
        "id": "i1",
        "title": "Bank",
        "category": "LOGIN",
        "vault": _PRIVATE,
        "tags": ["money"],
        "urls": [{"primary": True, "href": "https://ann:pw@bank.example/login?token=abc"}],
        "additional_information": "ann",
        "fields": [
            {"id": "username", "type": "STRING", "purpose": "USERNAME", "label": "username", "value": "ann"},
            {"id": "password", "type": "CONCEALED", "purpose": "PASSWORD", "label": "password", "value": PASSWORD},
            {"id": "notesPlain", "type": "STRING", "purpose": "NOTES", "label": "notesPlain", "value": NOTE},
            {"id": "otp", "type": "OTP", "label": "one-time password", "value": "otpauth://totp/x?secret=ABCDEFGH2345",
             "totp": "123456"},
            {"id": "hint", "type": "STRING", "label": "hint", "value": f"it is {PASSWORD}!",
             "section": {"id": "s", "label": "More"}},
            {"id": "api", "type": "STRING", "label": "api key", "value": "plain-looking"},
            {"id": "empty", "type": "CONCEALED", "label": "second password"},
        ],
    },
    {
        "id": "i2",
        "title": "Visa",
        "category": "CREDIT_CARD",
        "vault": _PRIVATE,
        "additional_information": "4111 **** 1111",
        "fields": [
            {"id": "ccnum", "type": "CREDIT_CARD_NUMBER", "label": "number", "value": CARD},
            {"id": "expiry", "type": "MONTH_YEAR", "label": "expiry date", "value": "203001"},
            {"id": "account", "type": "STRING", "label": "issued as", "value": "hidden-holder"},
        ],
    },
    {"id": "i3", "title": "日記 📓", "category": "SECURE_NOTE", "vault": _PRIVATE, "additional_information": NOTE,
     "fields": [{"id": "notesPlain", "type": "STRING", "purpose": "NOTES", "label": "notesPlain", "value": NOTE}]},
    {"id": "i4", "title": "Bank", "category": "LOGIN", "vault": {"id": "vw", "name": "Büro & Co"}, "fields": []},
]  # fmt: skip
SECRETS = {
    "op://Private/Bank/password": PASSWORD,
    "op://Private/Bank/More/hint": "h",
    "op://Private/Bank/one-time password?attribute=otp": "111111",
    "op://vp/i1/otp?attribute=otp": "222222",
    "op://Private/Bank/empty": "",
}
