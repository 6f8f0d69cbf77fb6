"""Notes what changes while the hub runs: servers that come and go, and files that say who may do what."""

from __future__ import annotations

from annabelle.core.ports import Audit
from annabelle.hub.security.users_file import Users
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.notices import Notice


def note_servers(toolbox: Toolbox, audit: Audit) -> None:
    """What the toolbox tells a person about its servers is noted, without the sentence."""

    def heard(notice: Notice) -> None:
        kind = "config" if notice.kind in ("servers_changed", "external_config") else "server"
        audit.note(kind, {"event": notice.kind, "server": notice.server})

    toolbox.on_notice(heard)


def note_users(users: Users, audit: Audit) -> None:
    """Who beside the owner may come in, from now on."""
    audit.note("config", {"event": "changed", "what": "users", "users": [user.id for user in users.users]})
