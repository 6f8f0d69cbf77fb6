"""A packed document is measured before it is unpacked: each part, all parts together, and how many there are."""

from __future__ import annotations

import pytest

from annabelle.core.errors import TooLarge
from annabelle.servers.documents.formats import zip_formats
from servers.documents import papers

pytestmark = pytest.mark.req("SRV-ALL")


@pytest.mark.parametrize(
    ("limit", "most", "words"),
    [("MAX_MEMBERS", 2, "in 3 parts"), ("MAX_UNPACKED", 299, "300 bytes"), ("MAX_MEMBER", 99, "far more than it is")],
)
def test_one_more_than_may_be_is_not_opened(monkeypatch: pytest.MonkeyPatch, limit: str, most: int, words: str) -> None:
    data = papers.zipped({f"word/{name}.xml": "x" * 100 for name in ("document", "styles", "settings")})
    monkeypatch.setattr(zip_formats, limit, most)
    with pytest.raises(TooLarge, match=words), zip_formats.open_checked_zip(data):
        pass
    monkeypatch.setattr(zip_formats, limit, most + 1)
    with zip_formats.open_checked_zip(data) as archive:
        assert len(archive.namelist()) == 3
