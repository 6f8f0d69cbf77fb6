"""The file of pins: its key is made once, and not again because it could not be read for a moment."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import Home
from annabelle.toolbox.external.fingerprint import EntryFingerprint
from annabelle.toolbox.external.pins import DamagedPin, PinsFile, ServerPin

YES = ServerPin(entry=EntryFingerprint(digest="d", lines=()), accepted=True)


@pytest.mark.req("TRU-07")
def test_a_key_that_can_not_be_read_just_now_costs_no_yes(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    pins = PinsFile(home.pins_file)
    pins.save("mailer", YES)
    read = Path.read_text

    def busy(path: Path, encoding: str | None = None) -> str:
        if path.name == "pins-key.json":
            raise OSError(24, "Too many open files")
        return read(path, encoding=encoding)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_text", busy)
        with pytest.raises(DamagedPin):
            pins.get("mailer")
        with pytest.raises(StorageTrouble, match="Too many open files"):
            pins.save("other", YES)
    assert pins.get("mailer") == YES
    assert pins.get("other") is None


@pytest.mark.req("TRU-07")
def test_a_look_makes_no_key_and_a_yes_makes_one(home: Home) -> None:
    pins, key = PinsFile(home.pins_file), home.pins_file.with_name("pins-key.json")
    pins.save("mailer", YES)
    key.unlink()
    with pytest.raises(DamagedPin):
        pins.get("mailer")
    assert not key.exists()
    key.write_text("{")
    pins.save("mailer", YES)
    assert pins.get("mailer") == YES


@pytest.mark.req("TRU-07")
@pytest.mark.incident("I-09")
def test_a_yes_to_one_server_can_not_be_put_under_the_name_of_another(home: Home) -> None:
    pins = PinsFile(home.pins_file)
    pins.save("mailer", YES)
    written = json.loads(home.pins_file.read_text(encoding="utf-8"))
    written["servers"]["planted"] = written["servers"]["mailer"]
    home.pins_file.write_text(json.dumps(written), encoding="utf-8")
    with pytest.raises(DamagedPin, match="not written by this Annabelle"):
        pins.get("planted")
    assert pins.get("mailer") == YES
