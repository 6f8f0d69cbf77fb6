"""Tools that answer the page and ask it: its dialogs, and functions that run inside it."""

from __future__ import annotations

from typing import Annotated, cast

from pydantic import Field

from annabelle.core.errors import RetryByModel, ToolTimeout
from annabelle.servers.kit import tool
from annabelle.servers.web.acting import Element
from annabelle.servers.web.house import House
from annabelle.servers.web.results import Content, Done
from annabelle.servers.web.wording import shown_line, shown_text

SHOWN_CHARS = 10_000
MAX_CHARS = 500_000
"""Of a result, counted in the page: a larger one never leaves it."""

# The function's text stands in the page's own script, not in an eval, which a page may forbid.
_WRAPPED = """async element => {
  const limit = %d;
  try {
    const given = (%s
    );
    const value = typeof given === 'function' ? await given(element) : await given;
    let text;
    try { text = JSON.stringify(value); } catch (error) { text = undefined; }
    text = text === undefined ? String(value) : text;
    return {text: text.slice(0, limit), length: text.length};
  } catch (error) { return {error: String(error).slice(0, 500)}; }
}"""


class Scripting:
    """A function runs in the page with the page's own rights, and reaches what the page may reach."""

    def __init__(self, house: House) -> None:
        self._house = house

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_evaluate(
        self,
        function: Annotated[
            str,
            Field(
                description="JavaScript: () => document.title, or (element) => element.value with a ref",
                min_length=1,
                max_length=20_000,
            ),
        ],
        element: Element = None,
        ref: Annotated[
            str | None, Field(description="The element the function gets, by its ref", max_length=40)
        ] = None,
    ) -> Content:
        """Run a JavaScript function in the page and give back its result as JSON."""
        async with self._house.use() as session:
            tab = await session.tab()
            target = await tab.target(ref) if ref else None
            script = _WRAPPED % (MAX_CHARS, function)
            milliseconds = session.patience.action * 1000
            await tab.channel()
            call = target.evaluate(script, timeout=milliseconds) if target is not None else tab.page.evaluate(script)
            try:
                found = cast("object", await tab.perform("The function", call))
            except ToolTimeout:
                await tab.stop_script()
                raise ToolTimeout(
                    f"The function took longer than {session.patience.action:g} s and was stopped.",
                    hint="Make it do less, or not wait.",
                ) from None
            text = _result(found)
            shown = await self._house.overflow.show(text, SHOWN_CHARS, "result.json")
            return Content(
                url=session.url(tab),
                title=await tab.title(),
                content=shown.text,
                total_chars=shown.total_chars,
                rest=shown.rest,
                news=session.news(),
            )

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_handle_dialog(
        self,
        accept: Annotated[bool, Field(description="OK instead of Cancel")],
        promptText: Annotated[
            str | None, Field(description="What to answer, if the dialog asks for a text", max_length=10_000)
        ] = None,
    ) -> Done:
        """Answer the dialog a page has opened (alert, confirm, prompt, leaving the page)."""
        async with self._house.use() as session:
            tab = await session.tab(dialog=True)
            did = await tab.dialogs.answer(accept, promptText)
            await tab.after_dialog()
            return await session.done(did, tab)


def _result(found: object) -> str:
    if not isinstance(found, dict):
        raise RetryByModel("The function gave nothing that can be read.")
    facts = cast("dict[str, object]", found)
    if "error" in facts:
        raise RetryByModel(f"The function failed: {shown_line(str(facts['error']), 300)}")
    return shown_text(str(facts.get("text", "")))
