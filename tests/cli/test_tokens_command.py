"""`annabelle tokens` as a person types it."""

from __future__ import annotations

import pytest

from cli.typed import Keyboard


@pytest.mark.incident("I-03")
def test_tokens_are_made_listed_rotated_and_revoked(keyboard: Keyboard) -> None:
    made = keyboard("tokens", "add", "ci", "--kind", "agent", "--scope", "talk")
    secret = made.out.strip()
    assert (made.code, len(secret) >= 32) == (0, True)
    assert "kept nowhere" in made.err
    listed = keyboard("tokens", "--json")
    (ci,) = [one for one in listed.json["tokens"] if one["name"] == "ci"]
    assert (ci["kind"], ci["scopes"], ci["lastUsedAt"]) == ("agent", ["talk"], None)
    assert secret not in listed.out
    shown = keyboard.said("tokens", "list")
    assert "ci" in shown
    assert "never" in shown
    rotated = keyboard("tokens", "rotate", "ci", "--json").json
    assert (rotated["scopes"], rotated["secret"] != secret) == (["talk"], True)
    assert keyboard.said("tokens", "revoke", "ci").strip() == "The token ci is no longer good."
    for arguments, sentence in (
        (("revoke", "ci"), "There is no token ci."),
        (("rotate", "main"), "The token main goes with the person and can not be changed here."),
        (("add", "x", "--kind", "agent", "--scope", "approve"), "of the kind agent can not have the scope approve"),
        (("add", "x", "--kind", "robot"), "kind is not valid"),
        (("add", "../x", "--kind", "agent"), "name is not valid"),
    ):
        refused = keyboard("tokens", *arguments)
        assert refused.code != 0
        assert sentence in refused.err
        assert "Traceback" not in refused.err
