"""Brave Search, with a key."""

from __future__ import annotations

from annabelle.core.errors import ProviderDown, ProviderFailed, ProviderRateLimited, ProviderRefused
from annabelle.servers.searcher.providers.asking import Answered, JsonMap, Service, entries, mapping
from annabelle.servers.searcher.providers.provider import Hit, ImageHit, Question
from annabelle.servers.searcher.providers.spacing import Spacing

SET_KEY = "Set a valid one: annabelle config set BRAVE_API_KEY"


class Brave:
    """Web, news and image search of Brave; one request per `spacing`, as the plan allows."""

    name = "Brave Search"
    knows_days = True

    def __init__(self, address: str, key: str, spacing: Spacing) -> None:
        self._service = Service(address, {"X-Subscription-Token": key})
        self._spacing = spacing

    async def web(self, question: Question) -> list[Hit]:
        answer = await self._ask("web", question, question.safesearch)
        return [_hit(entry) for entry in entries(answer, "web", "results")]

    async def news(self, question: Question) -> list[Hit]:
        answer = await self._ask("news", question, question.safesearch)
        return [_hit(entry) for entry in entries(answer, "results")]

    async def images(self, question: Question) -> list[ImageHit]:
        # Brave knows no moderate for images.
        answer = await self._ask("images", question, "off" if question.safesearch == "off" else "strict")
        return [
            ImageHit(
                title=entry.get("title"),
                image=mapping(entry.get("properties")).get("url"),
                page=entry.get("url"),
                thumbnail=mapping(entry.get("thumbnail")).get("src"),
                source=entry.get("source"),
                width=mapping(entry.get("properties")).get("width"),
                height=mapping(entry.get("properties")).get("height"),
            )
            for entry in entries(answer, "results")
        ]

    async def _ask(self, kind: str, question: Question, safesearch: str) -> JsonMap:
        await self._spacing.turn()
        parameters = {
            "q": question.query,
            "count": question.count,
            "freshness": question.freshness.for_brave() if kind != "images" else None,
            "safesearch": safesearch,
            "text_decorations": "false" if kind == "web" else None,
            "result_filter": "web" if kind == "web" else None,
        }
        answer = await self._service.ask(f"/res/v1/{kind}/search", parameters)
        if answer.status != 200:
            raise self._trouble(answer)
        return answer.body

    def _trouble(self, answer: Answered) -> Exception:
        code = mapping(answer.body.get("error")).get("code")
        if answer.status == 429:
            pause = answer.retry_after or 5.0
            self._spacing.hold(pause)
            return ProviderRateLimited(
                "Brave Search asks for fewer requests, or the plan is used up.",
                hint=f"Try again in {pause:.0f} seconds.",
            )
        if answer.status in (401, 403) or code == "SUBSCRIPTION_TOKEN_INVALID":
            return ProviderRefused("Brave Search does not accept the key.", hint=SET_KEY)
        if answer.status >= 500:
            return ProviderDown(f"Brave Search is out of order for now ({answer.status}).", hint="Try again later.")
        return ProviderFailed(f"Brave Search did not take the request ({answer.status}).", hint="Change the query.")


def _hit(entry: JsonMap) -> Hit:
    return Hit(
        title=entry.get("title"),
        url=entry.get("url"),
        snippet=entry.get("description"),
        age=entry.get("age") or entry.get("page_age"),
        source=mapping(entry.get("profile")).get("name") or mapping(entry.get("meta_url")).get("hostname"),
    )
