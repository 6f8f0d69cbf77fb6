"""Tools that fill forms in: fields, lists, files."""

from __future__ import annotations

import contextlib
import mimetypes
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated, Literal, cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import RetryByModel, TooLarge
from annabelle.servers.kit import tool
from annabelle.servers.web.acting import Element, Ref
from annabelle.servers.web.house import House
from annabelle.servers.web.results import Done
from annabelle.servers.web.secret_fields import checked_field
from annabelle.servers.web.tab import DialogOpened, Tab
from annabelle.servers.web.wording import shown_line

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, FilePayload, Locator

MAX_UPLOAD_BYTES = 45_000_000
"""Of all files together; the browser takes no more than 50 MB this way."""
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


class Forms:
    """What is typed appears in no log and in no error."""

    def __init__(self, house: House) -> None:
        self._house = house

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_fill_form(
        self,
        fields: Annotated[
            list[FormField], Field(description="The fields to fill, in order", min_length=1, max_length=50)
        ],
    ) -> Done:
        """Fill several fields of a form at once. Nothing is sent: click the form's button for that."""
        async with self._house.use() as session:
            tab = await session.tab()
            targets = [await tab.target(field.ref) for field in fields]  # all are there before the first is changed
            pairs = list(zip(fields, targets, strict=True))
            entries = [await checked_field(tab, target, field.value) for field, target in pairs]
            filled = 0
            try:
                for (field, target), entry in zip(pairs, entries, strict=True):
                    await _fill(tab, field, target, entry)
                    filled += 1
            except DialogOpened:
                pass
            except RetryByModel as error:
                before = f"{filled} of {len(fields)} fields were filled before it. " if filled else ""
                raise RetryByModel(
                    f"{shown_line(fields[filled].name, 60)} ({fields[filled].ref}): {error.message}",
                    hint=f"{before}{error.hint or ''}",
                ) from error
            return await session.done(f"Filled {filled} of {len(fields)} fields.", tab)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def browser_select_option(
        self,
        ref: Ref,
        values: Annotated[
            list[Annotated[str, Field(max_length=1000)]],
            Field(description="Values or labels of the options to select", min_length=1, max_length=50),
        ],
        element: Element = None,
    ) -> Done:
        """Select options of a drop-down list."""
        async with self._house.use() as session:
            tab = await session.tab()
            target = await tab.target(ref)
            with contextlib.suppress(DialogOpened):  # the result shows it
                await _select(tab, target, values)
            return await session.done(f"Selected {len(values)} option{'s' if len(values) > 1 else ''}.", tab)

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
    ) -> Done:
        """Give the page files of the workspace, after a click made it ask for them."""
        async with self._house.use() as session:
            tab = await session.tab()
            target = await tab.target(ref) if ref else None
            if target is None and tab.chooser is None:
                raise RetryByModel("The page does not ask for files.", hint="Click its upload button first.")
            files = await self._payloads(paths or [])
            chooser, tab.chooser = tab.chooser, None
            milliseconds = session.patience.action * 1000
            if not files and target is None:
                return await session.done("Gave no files.", tab)
            if target is not None:
                call = target.set_input_files(files, timeout=milliseconds)
            else:
                assert chooser is not None
                if len(files) > 1 and not chooser.is_multiple():
                    tab.chooser = chooser
                    raise RetryByModel("The page takes one file only.", hint="Call again with one path.")
                call = chooser.set_files(files, timeout=milliseconds)
            return await session.act(tab, "Uploading", call, f"Gave the page {len(files)} file(s).")

    async def _payloads(self, paths: list[str]) -> list[FilePayload]:
        files: list[FilePayload] = []
        total = 0
        for path in paths:
            read = await self._house.workspace.read(path, MAX_UPLOAD_BYTES, "paths")
            total += len(read.data)
            if total > MAX_UPLOAD_BYTES:
                raise TooLarge(f"At most {MAX_UPLOAD_BYTES} bytes are uploaded at once.", field="paths")
            name = PurePosixPath(read.path).name
            kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
            files.append({"name": name, "mimeType": kind, "buffer": read.data})
        return files


async def _fill(tab: Tab, field: FormField, target: Locator, entry: Locator | ElementHandle) -> None:
    milliseconds = tab.patience.action * 1000
    if field.type == "checkbox":
        wanted = field.value.strip().lower()
        if wanted not in (*_YES, *_NO):
            raise RetryByModel("A checkbox takes true or false.")
        await tab.perform("Setting the checkbox", target.set_checked(wanted in _YES, timeout=milliseconds))
    elif field.type == "radio":
        await tab.perform("Choosing", target.check(timeout=milliseconds))
    elif field.type == "combobox" and await _options(tab, target) is not None:
        await _select(tab, target, [field.value])
    else:
        await tab.perform("Filling the field", entry.fill(field.value, timeout=milliseconds))


async def _options(tab: Tab, target: Locator) -> list[list[str]] | None:
    """Value and label of each option; None for what is no drop-down list of the browser's own."""
    found = await tab.perform("Reading the list", target.evaluate(_OPTIONS, timeout=tab.patience.action * 1000))
    return cast("list[list[str]] | None", found)


async def _select(tab: Tab, target: Locator, values: list[str]) -> None:
    options = await _options(tab, target)
    if options is None:
        raise RetryByModel(
            "This is no drop-down list of the usual kind.", hint="Click it, take a snapshot, and click the option."
        )
    known = {str(word) for option in options for word in option}
    if not set(values) <= known:
        labels = [shown_line(str(option[1]), 60) for option in options[:_SHOWN_OPTIONS]]
        raise RetryByModel("The list has no such option.", hint=f"It has: {', '.join(labels)}.")
    await tab.perform("Selecting", target.select_option(values, timeout=tab.patience.action * 1000))
