"""`annabelle rules` as a person types it."""

from __future__ import annotations

import pytest

from cli.typed import Keyboard


@pytest.mark.req("TRU-05")
def test_rules_are_added_listed_and_revoked(keyboard: Keyboard) -> None:
    assert "There are no rules yet" in keyboard.said("rules")
    added = keyboard.said("rules", "add", "always ask before deleting mail")
    assert "Before anything that deletes mail: ask you. It holds." in added
    (rule,) = keyboard("rules", "--json").json["rules"]
    assert rule["id"] in keyboard.said("rules", "list")
    confirmed = keyboard.said("rules", "confirm", rule["id"])
    assert f"It holds. To end it: annabelle rules revoke {rule['id']}" in confirmed
    refused = keyboard("rules", "add", "be nice")
    assert refused.code != 0
    assert "not a rule of the form" in refused.err
    misspelt = keyboard("rules", "add", "never delete mail", "--agent", "anabelle")
    assert (misspelt.code != 0, "There is no agent anabelle." in misspelt.err) == (True, True)
    assert len(keyboard("rules", "--json").json["rules"]) == 1
    assert "It holds no more." in keyboard.said("rules", "revoke", rule["id"])
    assert "There are no rules yet" in keyboard.said("rules")
    assert rule["id"] in keyboard.said("rules", "list", "--all")
