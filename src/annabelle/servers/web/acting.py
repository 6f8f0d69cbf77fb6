"""Tools that use the page as a hand does: mouse and keys."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import RetryByModel
from annabelle.servers.kit import tool
from annabelle.servers.web.house import House
from annabelle.servers.web.results import Done
from annabelle.servers.web.secret_fields import checked_field, holds_secret
from annabelle.servers.web.tab import DialogOpened
from annabelle.servers.web.wording import shown_line

Ref = Annotated[str, Field(description="The element's ref from the last browser_snapshot", min_length=1, max_length=40)]
Element = Annotated[str | None, Field(description="What the element is, in words", max_length=500)]
Modifier = Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]

_SLOW_CHARS = 2_000
_PER_CHAR = 0.03


class Acting:
    """A click may buy something, so all of these count as destructive."""

    def __init__(self, house: House) -> None:
        self._house = house

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_click(
        self,
        ref: Ref,
        element: Element = None,
        doubleClick: Annotated[bool, Field(description="Click twice")] = False,
        button: Annotated[Literal["left", "right", "middle"], Field(description="Which mouse button")] = "left",
        modifiers: Annotated[
            list[Modifier] | None, Field(description="Keys that are held down meanwhile", max_length=5)
        ] = None,
    ) -> Done:
        """Click an element."""
        async with self._house.use() as session:
            tab = await session.tab()
            target = await tab.target(ref)
            milliseconds = session.patience.action * 1000
            if doubleClick:
                call = target.dblclick(button=button, modifiers=modifiers, timeout=milliseconds)
            else:
                call = target.click(button=button, modifiers=modifiers, timeout=milliseconds)
            return await session.act(tab, "Clicking", call, f"Clicked {_named(element, ref)}.")

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_drag(
        self,
        startElement: Annotated[str, Field(description="What is dragged, in words", max_length=500)],
        startRef: Annotated[str, Field(description="Its ref", min_length=1, max_length=40)],
        endElement: Annotated[str, Field(description="Where it is dropped, in words", max_length=500)],
        endRef: Annotated[str, Field(description="The ref of that", min_length=1, max_length=40)],
    ) -> Done:
        """Drag one element and drop it on another."""
        async with self._house.use() as session:
            tab = await session.tab()
            start, end = await tab.target(startRef), await tab.target(endRef)
            call = start.drag_to(end, timeout=session.patience.action * 1000)
            did = f"Dragged {_named(startElement, startRef)} to {_named(endElement, endRef)}."
            return await session.act(tab, "Dragging", call, did)

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def browser_hover(self, ref: Ref, element: Element = None) -> Done:
        """Move the mouse over an element, for menus and tips that open so."""
        async with self._house.use() as session:
            tab = await session.tab()
            target = await tab.target(ref)
            call = target.hover(timeout=session.patience.action * 1000)
            return await session.act(tab, "Hovering", call, f"The mouse is over {_named(element, ref)}.")

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_type(
        self,
        ref: Ref,
        text: Annotated[str, Field(description="What to type; it replaces what the field holds", max_length=100_000)],
        element: Element = None,
        submit: Annotated[bool, Field(description="Press Enter after it")] = False,
        slowly: Annotated[
            bool, Field(description="Key by key, for pages that react to each; adds to what the field holds")
        ] = False,
    ) -> Done:
        """Type text into a field."""
        async with self._house.use() as session:
            tab = await session.tab()
            target = await tab.target(ref)
            if slowly and holds_secret(text):
                # Key by key, another frame could take the focus on the way.
                raise RetryByModel("A secret is typed at once.", hint="Call again without slowly.")
            entry = await checked_field(tab, target, text)
            seconds = session.patience.action
            did = f"Typed into {_named(element, ref)}"
            try:
                if slowly:
                    keys = text[:_SLOW_CHARS]
                    limit = seconds + len(keys) * _PER_CHAR
                    await tab.perform("Typing", target.press_sequentially(keys, timeout=limit * 1000), limit)
                    if len(text) > _SLOW_CHARS:
                        did = (
                            f"Typed only the first {_SLOW_CHARS} of {len(text)} characters into {_named(element, ref)}"
                        )
                else:
                    await tab.perform("Typing", entry.fill(text, timeout=seconds * 1000))
                if submit:
                    await tab.perform("Pressing Enter", entry.press("Enter", timeout=seconds * 1000))
                    did += " and pressed Enter"
            except DialogOpened:
                did += "; a dialog opened meanwhile"
            return await session.done(f"{did}.", tab)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_press_key(
        self,
        key: Annotated[
            str, Field(description="Enter, Escape, ArrowDown, a, Control+a and so on", min_length=1, max_length=50)
        ],
    ) -> Done:
        """Press a key, or several together, in the page."""
        async with self._house.use() as session:
            tab = await session.tab()
            keyboard = tab.page.keyboard
            # A letter that no key has is entered as an input method would.
            call = keyboard.insert_text(key) if len(key) == 1 and not key.isascii() else keyboard.press(key)
            return await session.act(tab, "Pressing the key", call, "Pressed the key.")


def _named(element: str | None, ref: str) -> str:
    return f"{shown_line(element, 80)} ({ref})" if element else ref
