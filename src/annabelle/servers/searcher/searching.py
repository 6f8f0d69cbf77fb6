"""The tools that search: pages, news, images."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit import tool
from annabelle.servers.searcher.found import ImageResults, SearchResults, pages, pictures
from annabelle.servers.searcher.freshness import Freshness
from annabelle.servers.searcher.plain import words
from annabelle.servers.searcher.providers.chain import Chain
from annabelle.servers.searcher.providers.provider import Question, SafeSearch

Query = Annotated[str, Field(min_length=1, max_length=400, description="What to search for, as one would type it")]
Count = Annotated[int, Field(ge=1, le=20, description="How many results")]
FreshnessText = Annotated[
    str | None,
    Field(
        max_length=40,
        description="Only newer ones: pd, pw, pm or py (past day, week, month, year), or 2026-01-01to2026-01-31",
    ),
]


class Searching:
    """web_search, news_search, image_search."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def web_search(
        self,
        query: Query,
        count: Count = 10,
        freshness: FreshnessText = None,
        safesearch: Annotated[SafeSearch, Field(description="How much to leave out what is not for everyone")] = (
            "moderate"
        ),
    ) -> SearchResults:
        """Search the web. Gives title, address and a snippet of each page; web_fetch reads a whole one."""
        question = _question(query, count, freshness, safesearch)
        outcome = await self._chain.ask(lambda provider, asked: provider.web(asked), question)
        return SearchResults(
            query=question.query,
            provider=outcome.provider,
            results=pages(outcome.hits, count),
            note=outcome.note,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def news_search(self, query: Query, count: Count = 10, freshness: FreshnessText = None) -> SearchResults:
        """Search the news. Gives title, address, source and age of each article; web_fetch reads a whole one."""
        question = _question(query, count, freshness, "moderate")
        outcome = await self._chain.ask(lambda provider, asked: provider.news(asked), question)
        return SearchResults(
            query=question.query,
            provider=outcome.provider,
            results=pages(outcome.hits, count),
            note=outcome.note,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def image_search(
        self,
        query: Query,
        count: Annotated[int, Field(ge=1, le=50, description="How many pictures")] = 5,
        safesearch: Annotated[
            Literal["off", "strict"], Field(description="How much to leave out what is not for everyone")
        ] = "strict",
    ) -> ImageResults:
        """Search for pictures. Gives the address of each picture, of its thumbnail and of the page it is on."""
        question = _question(query, count, None, safesearch)
        outcome = await self._chain.ask(lambda provider, asked: provider.images(asked), question)
        return ImageResults(
            query=question.query,
            provider=outcome.provider,
            results=pictures(outcome.hits, count),
            note=outcome.note,
        )


def _question(query: str, count: int, freshness: str | None, safesearch: SafeSearch) -> Question:
    asked = words(query)
    if not asked:
        raise InvalidArguments("The query has no words in it.", field="query")
    return Question(asked, count, Freshness.parse(freshness), safesearch)
