"""Links that sign a browser in are good for a short while (UX-02)."""

from __future__ import annotations

import pytest

from annabelle.core.errors import Unauthorized
from annabelle.hub.security import page_links
from annabelle.hub.security.identities import CallerIdentity


@pytest.mark.req("UX-02")
def test_a_link_that_has_expired_is_refused_as_one_that_was_used(monkeypatch: pytest.MonkeyPatch) -> None:
    links, owner = page_links.PageLinks(), CallerIdentity("owner")
    (used, _), (late, until) = links.make(owner), links.make(owner)
    assert links.find(used) == links.find(late) == owner
    links.spend(used)
    monkeypatch.setattr(page_links, "now", lambda: until)
    for code in (used, late):
        with pytest.raises(Unauthorized, match="This link was used before or has expired"):
            links.find(code)
