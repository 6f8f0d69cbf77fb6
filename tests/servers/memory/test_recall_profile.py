"""The profile along with the memories: as `get_profile` shows it, with the same labels, and only when asked for."""

from __future__ import annotations

import pytest

from servers.memory.memories import Memory


@pytest.mark.req("CTX-01", "MEM-09")
async def test_memories_bring_the_profile_of_their_owner_with_its_labels(memory: Memory) -> None:
    told, read = memory.as_(), memory.as_(trust="untrusted", origins=("web_fetch",))
    await told("store_fact", fact="Ada likes tea", category="preference")
    await told("update_profile", updates={"user": {"city": "Lisbon"}})
    plain = await told("retrieve_memories", query="tea")
    assert (plain.profile, plain.trust) == (None, "trusted")

    found = await told("retrieve_memories", query="tea", include_profile=True)
    assert found.profile == await told("get_profile")
    assert found.trust == "trusted"
    assert "user.city: Lisbon" in found.to_text()
    assert "Ada likes tea" in found.to_text()

    await read("update_profile", updates={"user": {"boss": "Eve"}})
    marked = await told("retrieve_memories", query="tea", include_profile=True)
    assert marked.profile.untrusted_fields == ["user.boss"]
    assert marked.trust == "untrusted", "whoever reads it has read what others may have written"
    assert (await told("retrieve_memories", query="tea")).trust == "trusted"

    stranger = await memory.as_("eve")("retrieve_memories", query="tea", include_profile=True)
    assert (stranger.facts, stranger.profile.profile) == ([], {})
