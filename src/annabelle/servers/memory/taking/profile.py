"""Takes a profile in: with its history into an empty one, else as one more version of the one that is here."""

from __future__ import annotations

from typing import cast

from annabelle.core.tools import JsonObject
from annabelle.servers.memory.files.profile_page import profile_check
from annabelle.servers.memory.files.rows import ProfilePage, ProfileRow, VersionRow
from annabelle.servers.memory.profile_document import (
    changed_fields,
    checked,
    difference,
    guard_persona,
    leaves,
    merged,
    still_untrusted,
)
from annabelle.servers.memory.taking.tally import Taking
from annabelle.store.memory import profiles
from annabelle.store.memory.profiles import Because, Profile, ProfileVersion


class TakeProfile:
    """The profile of one import."""

    def __init__(self, taking: Taking) -> None:
        self._taking = taking
        self._versions: list[ProfileVersion] = []

    def version(self, row: VersionRow) -> None:
        """A version of the file's profile; the profile itself comes after them."""
        origin = {**cast("JsonObject", row.origin), "import": {"file": self._taking.name}}
        content = cast("JsonObject", row.content)
        self._versions.append(ProfileVersion(row.version, content, row.reason, row.trust, origin, row.changed_at))

    def row(self, row: ProfileRow) -> None:
        """The profile of a document."""
        taking = self._taking
        held = profiles.take(taking.connection, taking.owner)
        content = checked(cast("JsonObject", row.content))
        versions = sorted(self._versions, key=lambda version: version.version)
        if held.version == 0 and versions and taking.trust == "trusted":
            profiles.adopt(taking.connection, taking.owner, versions)
            taking.tally.count("profile versions", "added", len(versions))
            held = profiles.take(taking.connection, taking.owner)
        newer = held.updated_at is None or (row.updated_at is not None and row.updated_at > held.updated_at)
        if newer and content:
            # What others may have written of it is noted with the version it is.
            doubtful = next((one.untrusted for one in versions if one.version == row.version), frozenset[str]())
            self._put(held, merged(held.content, difference(held.content, content)), doubtful)
        elif content:
            taking.tally.count("profile", "unchanged")

    def page(self, row: ProfilePage) -> None:
        """The page of the profile. What was changed on it is changed here, whatever else has happened since."""
        taking = self._taking
        held = profiles.take(taking.connection, taking.owner)
        content = cast("JsonObject", row.content)
        base = self._base(row)
        updates = content if base is None else difference(base, content)
        self._put(held, merged(held.content, updates))

    def _base(self, row: ProfilePage) -> JsonObject | None:
        if row.version is None:
            return None
        past = profiles.version_of(self._taking.connection, self._taking.owner, row.version)
        content = past.content if past else JsonObject()
        return content if (past or row.version == 0) and profile_check(content) == row.check else None

    def _put(self, held: Profile, content: JsonObject, doubtful: frozenset[str] = frozenset()) -> None:
        taking, wanted = self._taking, checked(content)
        guard_persona(held.content, wanted, taking.trust)
        untrusted = still_untrusted(held.content, wanted, held.untrusted, taking.trust == "trusted")
        untrusted |= doubtful & set(changed_fields(held.content, wanted)) & dict(leaves(wanted)).keys()
        why = Because(f"import of {taking.name}", taking.trust, taking.from_file())
        new = profiles.put(taking.connection, taking.owner, held, wanted, untrusted, why)
        taking.tally.count("profile", "changed" if new.version != held.version else "unchanged")
