"""Who came in is noted once, who was turned away is counted, and a flood fills no disk."""

from __future__ import annotations

import pytest

from annabelle.core.errors import NotAllowed, Unauthorized
from annabelle.core.tools import JsonObject
from annabelle.core.trust import AuditKind
from annabelle.hub.security.audit import LoginAudit
from annabelle.hub.security.identities import CallerIdentity, Identities, SubagentScope, authorize_path


class Kept:
    def __init__(self) -> None:
        self.facts: list[JsonObject] = []

    def note(self, kind: AuditKind, facts: JsonObject, trace_id: str | None = None) -> None:
        assert kind == "login"
        self.facts.append(facts)


@pytest.mark.req("TRU-08")
def test_a_known_person_is_noted_once_for_each_kind_of_client() -> None:
    kept = Kept()
    logins = LoginAudit(kept)
    for _ in range(3):
        logins.accepted(CallerIdentity("owner"), "terminal")
        logins.accepted(CallerIdentity("owner"), "other")
        logins.accepted(CallerIdentity("user", "alice"), "other")
        logins.accepted(CallerIdentity("agent", agent_id="annabelle"), "other")
    assert [(one["user_id"], one["client"]) for one in kept.facts] == [
        ("owner", "terminal"),
        ("owner", "other"),
        ("alice", "other"),
    ]


@pytest.mark.req("TRU-08")
def test_a_flood_of_wrong_tokens_becomes_a_number() -> None:
    kept, time = Kept(), [0.0]
    logins = LoginAudit(kept, lambda: time[0])
    for _ in range(10_000):
        logins.refused("127.0.0.1", "/tools/call")
    assert len(kept.facts) == 5
    time[0] = 61.0
    logins.refused("127.0.0.1", "/status")
    assert kept.facts[5] == {"event": "refused", "more": 9995}
    assert kept.facts[6] == {"event": "refused", "from": "127.0.0.1", "path": "/status"}


@pytest.mark.req("TRU-08")
def test_a_process_is_noted_when_it_gets_its_secret_and_the_secret_is_not() -> None:
    kept = Kept()
    identities = Identities("x" * 20, on_admitted=LoginAudit(kept).admitted)
    secrets = [identities.admit("annabelle"), identities.admit("annabelle", SubagentScope("task_1", "msg_1"))]
    assert [(one["agent_id"], one["errand"]) for one in kept.facts] == [("annabelle", None), ("annabelle", "task_1")]
    assert not any(secret in str(kept.facts) for secret in secrets)
    with pytest.raises(Unauthorized):
        identities.identify(b"wrong")


@pytest.mark.req("TRU-06", "TRU-08")
@pytest.mark.parametrize("path", ["/stop", "/kill", "/resume", "/audit"])
@pytest.mark.parametrize(
    "who", [CallerIdentity("user", "alice"), CallerIdentity("agent", agent_id="annabelle"), CallerIdentity("server")]
)
def test_only_the_owner_stops_resumes_and_reads_the_audit(who: CallerIdentity, path: str) -> None:
    with pytest.raises(NotAllowed):
        authorize_path(who, path)
    authorize_path(CallerIdentity("owner"), path)
