"""PowerPoint files: the text of each slide, and of its notes."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from annabelle.servers.documents.formats.base import Facts, Format, Part, Wanted
from annabelle.servers.documents.formats.zipped import core_facts, opened, xml_of

_SLIDE = re.compile(r"ppt/slides/slide(\d{1,6})\.xml")
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"


class Slides(Format):
    part = "slide"

    def parts(self, data: bytes, wanted: Wanted) -> Iterator[Part]:
        with opened(data) as archive:
            for number, name in enumerate(_slides(archive), start=1):
                if wanted.has(number):
                    text = _text(xml_of(archive, name))
                    notes = _text(xml_of(archive, name.replace("slides/slide", "notesSlides/notesSlide")))
                    yield Part(number, f"slide {number}", f"{text}\n\nNotes: {notes}" if notes else text)

    def facts(self, data: bytes) -> Facts:
        with opened(data) as archive:
            return core_facts(archive).model_copy(update={"parts": len(_slides(archive))})


def _slides(archive: zipfile.ZipFile) -> list[str]:
    """By the numbers of their files, which follow the order of the slides unless somebody moved them."""
    found = ((int(match[1]), name) for name in archive.namelist() if (match := _SLIDE.fullmatch(name)))
    return [name for _, name in sorted(found)]


def _text(root: Element | None) -> str:
    if root is None:
        return ""
    lines = ("".join(run.text or "" for run in line.iter(f"{_A}t")) for line in root.iter(f"{_A}p"))
    return "\n".join(line for line in lines if line.strip())


FORMAT = Slides()
