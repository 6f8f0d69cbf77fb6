"""Tools that click, type and fill in forms."""

from __future__ import annotations

import contextlib
import mimetypes
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import RetryByModel, TooLarge
from annabelle.servers.kit import tool
from annabelle.servers.web.browser_pool import BrowserPool
from annabelle.servers.web.results import ActionResult, clean_line
from annabelle.servers.web.secret_fields import checked_field, holds_secret
from annabelle.servers.web.tab import BrowserTab, DialogOpened

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, FilePayload, Locator


Ref = Annotated[str, Field(description="The element's ref from the last browser_snapshot", min_length=1, max_length=40)]
Element = Annotated[str | None, Field(description="What the element is, in words", max_length=500)]
Modifier = Literal["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]

_SLOW_CHARS = 2_000
_PER_CHAR = 0.03


class InputTools:
    """All of these count as destructive: a click may buy something."""

    def __init__(self, pool: BrowserPool) -> None:
        self._pool = pool

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
    ) -> ActionResult:
        """Click an element."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            target = await tab.find_element(ref)
            milliseconds = session.timeouts.action * 1000
            if doubleClick:
                call = target.dblclick(button=button, modifiers=modifiers, timeout=milliseconds)
            else:
                call = target.click(button=button, modifiers=modifiers, timeout=milliseconds)
            return await session.perform_action(tab, "Clicking", call, f"Clicked {_name_element(element, ref)}.")

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_drag(
        self,
        startElement: Annotated[str, Field(description="What is dragged, in words", max_length=500)],
        startRef: Annotated[str, Field(description="Its ref", min_length=1, max_length=40)],
        endElement: Annotated[str, Field(description="Where it is dropped, in words", max_length=500)],
        endRef: Annotated[str, Field(description="The ref of that", min_length=1, max_length=40)],
    ) -> ActionResult:
        """Drag one element and drop it on another."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            start, end = await tab.find_element(startRef), await tab.find_element(endRef)
            call = start.drag_to(end, timeout=session.timeouts.action * 1000)
            did = f"Dragged {_name_element(startElement, startRef)} to {_name_element(endElement, endRef)}."
            return await session.perform_action(tab, "Dragging", call, did)

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def browser_hover(self, ref: Ref, element: Element = None) -> ActionResult:
        """Move the mouse over an element, for menus and tips that open so."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            target = await tab.find_element(ref)
            call = target.hover(timeout=session.timeouts.action * 1000)
            return await session.perform_action(
                tab, "Hovering", call, f"The mouse is over {_name_element(element, ref)}."
            )

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
    ) -> ActionResult:
        """Type text into a field."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            target = await tab.find_element(ref)
            if slowly and holds_secret(text):
                # Another frame could take the focus between two keys.
                raise RetryByModel("A secret is typed at once.", hint="Call again without slowly.")
            entry = await checked_field(tab, target, text)
            seconds = session.timeouts.action
            did = f"Typed into {_name_element(element, ref)}"
            try:
                if slowly:
                    keys = text[:_SLOW_CHARS]
                    limit = seconds + len(keys) * _PER_CHAR
                    await tab.perform("Typing", target.press_sequentially(keys, timeout=limit * 1000), limit)
                    if len(text) > _SLOW_CHARS:
                        into = _name_element(element, ref)
                        did = f"Typed only the first {_SLOW_CHARS} of {len(text)} characters into {into}"
                else:
                    await tab.perform("Typing", entry.fill(text, timeout=seconds * 1000))
                if submit:
                    await tab.perform("Pressing Enter", entry.press("Enter", timeout=seconds * 1000))
                    did += " and pressed Enter"
            except DialogOpened:
                did += "; a dialog opened meanwhile"
            return await session.action_result(f"{did}.", tab)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_press_key(
        self,
        key: Annotated[
            str, Field(description="Enter, Escape, ArrowDown, a, Control+a and so on", min_length=1, max_length=50)
        ],
    ) -> ActionResult:
        """Press a key, or several together, in the page."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            keyboard = tab.page.keyboard
            # A character without a key is inserted as an input method would do it.
            call = keyboard.insert_text(key) if len(key) == 1 and not key.isascii() else keyboard.press(key)
            return await session.perform_action(tab, "Pressing the key", call, "Pressed the key.")


def _name_element(element: str | None, ref: str) -> str:
    return f"{clean_line(element, 80)} ({ref})" if element else ref


MAX_UPLOAD_BYTES = 45_000_000
"""Limit for all files together. The browser accepts at most 50 MB this way."""
_OPTIONS = (
    "list => list.tagName === 'SELECT' ? [...list.options].slice(0, 1000).map(one => [one.value, one.label]) : null"
)
_SHOWN_OPTIONS = 30
_YES, _NO = ("true", "yes", "on", "1", "checked"), ("false", "no", "off", "0", "", "unchecked")


class FormField(BaseModel):
    """One field of a form."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(description="What the field is, in words", max_length=500)]
    type: Annotated[
        Literal["textbox", "checkbox", "radio", "combobox", "slider"], Field(description="What kind of field it is")
    ]
    ref: Ref
    value: Annotated[
        str,
        Field(description="Text, option, number, or true and false for a checkbox", max_length=100_000, repr=False),
    ]


class FormTools:
    """Typed text must not appear in logs or errors."""

    def __init__(self, pool: BrowserPool) -> None:
        self._pool = pool

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_fill_form(
        self,
        fields: Annotated[
            list[FormField], Field(description="The fields to fill, in order", min_length=1, max_length=50)
        ],
    ) -> ActionResult:
        """Fill several fields of a form at once. Nothing is sent: click the form's button for that."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            targets = [await tab.find_element(field.ref) for field in fields]  # find all before changing the first
            pairs = list(zip(fields, targets, strict=True))
            entries = [await checked_field(tab, target, field.value) for field, target in pairs]
            filled = 0
            try:
                for (field, target), entry in zip(pairs, entries, strict=True):
                    await _fill_field(tab, field, target, entry)
                    filled += 1
            except DialogOpened:
                pass
            except RetryByModel as error:
                before = f"{filled} of {len(fields)} fields were filled before it. " if filled else ""
                raise RetryByModel(
                    f"{clean_line(fields[filled].name, 60)} ({fields[filled].ref}): {error.message}",
                    hint=f"{before}{error.hint or ''}",
                ) from error
            return await session.action_result(f"Filled {filled} of {len(fields)} fields.", tab)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_select_option(
        self,
        ref: Ref,
        values: Annotated[
            list[Annotated[str, Field(max_length=1000)]],
            Field(description="Values or labels of the options to select", min_length=1, max_length=50),
        ],
        element: Element = None,
    ) -> ActionResult:
        """Select options of a drop-down list."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            target = await tab.find_element(ref)
            with contextlib.suppress(DialogOpened):  # the result shows it
                await _select_options(tab, target, values)
            return await session.action_result(f"Selected {len(values)} option{'s' if len(values) > 1 else ''}.", tab)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_file_upload(
        self,
        paths: Annotated[
            list[Annotated[str, Field(max_length=1000)]] | None,
            Field(description="Files of the workspace; none dismisses the question for files", max_length=10),
        ] = None,
        ref: Annotated[
            str | None, Field(description="The file field, when no question for files is open", max_length=40)
        ] = None,
    ) -> ActionResult:
        """Give the page files of the workspace, after a click made it ask for them."""
        async with self._pool.use_session() as session:
            tab = await session.current_tab()
            target = await tab.find_element(ref) if ref else None
            if target is None and tab.chooser is None:
                raise RetryByModel("The page does not ask for files.", hint="Click its upload button first.")
            files = await self._payloads(paths or [])
            chooser, tab.chooser = tab.chooser, None
            milliseconds = session.timeouts.action * 1000
            if not files and target is None:
                return await session.action_result("Gave no files.", tab)
            if target is not None:
                call = target.set_input_files(files, timeout=milliseconds)
            else:
                assert chooser is not None
                if len(files) > 1 and not chooser.is_multiple():
                    tab.chooser = chooser
                    raise RetryByModel("The page takes one file only.", hint="Call again with one path.")
                call = chooser.set_files(files, timeout=milliseconds)
            return await session.perform_action(tab, "Uploading", call, f"Gave the page {len(files)} file(s).")

    async def _payloads(self, paths: list[str]) -> list[FilePayload]:
        files: list[FilePayload] = []
        total = 0
        for path in paths:
            read = await self._pool.workspace.read(path, MAX_UPLOAD_BYTES, "paths")
            total += len(read.data)
            if total > MAX_UPLOAD_BYTES:
                raise TooLarge(f"At most {MAX_UPLOAD_BYTES} bytes are uploaded at once.", field="paths")
            name = PurePosixPath(read.path).name
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            files.append({"name": name, "mimeType": kind, "buffer": read.data})
        return files


async def _fill_field(tab: BrowserTab, field: FormField, target: Locator, entry: Locator | ElementHandle) -> None:
    milliseconds = tab.timeouts.action * 1000
    if field.type == "checkbox":
        wanted = field.value.strip().lower()
        if wanted not in (*_YES, *_NO):
            raise RetryByModel("A checkbox takes true or false.")
        await tab.perform("Setting the checkbox", target.set_checked(wanted in _YES, timeout=milliseconds))
    elif field.type == "radio":
        await tab.perform("Choosing", target.check(timeout=milliseconds))
    elif field.type == "combobox" and await _read_options(tab, target) is not None:
        await _select_options(tab, target, [field.value])
    else:
        await tab.perform("Filling the field", entry.fill(field.value, timeout=milliseconds))


async def _read_options(tab: BrowserTab, target: Locator) -> list[list[str]] | None:
    """Value and label of each option, or None if it is not a native drop-down list."""
    found = await tab.perform("Reading the list", target.evaluate(_OPTIONS, timeout=tab.timeouts.action * 1000))
    return cast("list[list[str]] | None", found)


async def _select_options(tab: BrowserTab, target: Locator, values: list[str]) -> None:
    options = await _read_options(tab, target)
    if options is None:
        raise RetryByModel(
            "This is no drop-down list of the usual kind.", hint="Click it, take a snapshot, and click the option."
        )
    known = {str(word) for option in options for word in option}
    if not set(values) <= known:
        labels = [clean_line(str(option[1]), 60) for option in options[:_SHOWN_OPTIONS]]
        raise RetryByModel("The list has no such option.", hint=f"It has: {', '.join(labels)}.")
    await tab.perform("Selecting", target.select_option(values, timeout=tab.timeouts.action * 1000))
