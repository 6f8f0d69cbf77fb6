"""Documents of every kind, made here: good ones, broken ones and hostile ones."""

from __future__ import annotations

import io
import struct
import tarfile
import zipfile
import zlib
from datetime import datetime
from email.message import EmailMessage

import docx
import openpyxl
import pypdf
from PIL import Image

ODF = "urn:oasis:names:tc:opendocument:xmlns"


def pdf(*pages: str, password: str | None = None) -> bytes:
    """A PDF with one line of text on each page."""
    whole = pdf_of([f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET".encode() for text in pages])
    writer = pypdf.PdfWriter(clone_from=io.BytesIO(whole))
    writer.add_metadata({"/Title": "Offer", "/Author": "Ann", "/CreationDate": "D:20260301120000Z"})
    if password is not None:
        writer.encrypt(password, algorithm="RC4-128")
    return _saved(writer.write)


def pdf_of(streams: list[bytes], extra: bytes = b"") -> bytes:
    """A PDF written by hand, from the streams of its pages; `extra` stands in the head of each stream."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>"]
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(streams)))
    objects.append(f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode())
    objects.append(b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>")
    for number, stream in enumerate(streams):
        resources = "/Resources << /Font << /F1 3 0 R >> >> /MediaBox [0 0 600 800]"
        objects.append(f"<< /Type /Page /Parent 2 0 R {resources} /Contents {5 + 2 * number} 0 R >>".encode())
        objects.append(b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(stream), extra, stream))
    out, places = bytearray(b"%PDF-1.4\n"), list[int]()
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def word() -> bytes:
    document = docx.Document()
    document.core_properties.title, document.core_properties.author = "Plan", "Ben"
    document.add_heading("The plan", level=1)
    document.add_paragraph("First we think.")
    table = document.add_table(rows=2, cols=2)
    for row, cells in zip(table.rows, (("Name", "Age"), ("Ann", "30")), strict=True):
        for cell, text in zip(row.cells, cells, strict=True):
            cell.text = text
    document.add_paragraph("Then we act.", style="List Bullet")
    return _saved(document.save)


def excel() -> bytes:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Costs"
    for row in (
        ["Item", "Price", "When"],
        ["Tea", 2.5, datetime(2026, 3, 1)],
        ["Cake", 4, None],
        ["Sum", "=B2+B3", None],
    ):
        sheet.append(row)
    other = book.create_sheet("Numbers")
    for number in range(1, 301):
        other.append([number, number * number])
    return _saved(book.save)


def slides() -> bytes:
    def slide(*lines: str) -> str:
        paragraphs = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in lines)
        names = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
        return (
            f'<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" {names}>{paragraphs}</p:sld>'
        )

    core = (
        '<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
        'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>Talk</dc:title></cp:coreProperties>'
    )
    return zipped({
        "ppt/presentation.xml": "<p/>", "ppt/slides/slide1.xml": slide("Welcome", "to the talk"),
        "ppt/slides/slide10.xml": slide("The end"), "ppt/slides/slide2.xml": slide("Middle"),
        "ppt/notesSlides/notesSlide2.xml": slide("Speak slowly"), "docProps/core.xml": core,
    })  # fmt: skip


def open_document(kind: str, body: str) -> bytes:
    names = " ".join(f'xmlns:{name}="{ODF}:{name}:1.0"' for name in ("office", "text", "table"))
    names += f' xmlns:draw="{ODF}:drawing:1.0"'
    meta = (
        f'<office:document-meta xmlns:office="{ODF}:office:1.0" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        "<office:meta><dc:title>Open</dc:title></office:meta></office:document-meta>"
    )
    content = f"<office:document-content {names}><office:body>{body}</office:body></office:document-content>"
    mime = f"application/vnd.oasis.opendocument.{kind}"
    return zipped({"mimetype": mime, "content.xml": content, "meta.xml": meta})


def mail() -> bytes:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Zoë <zoe@example.com>", "me@example.com", "Grüße & more"
    message["Date"] = "Sun, 01 Mar 2026 12:00:00 +0100"
    message.set_content("Hello,\nsee attached.")
    message.add_alternative("<p>Hello in HTML</p>", subtype="html")
    message.add_attachment(b"%PDF-", maintype="application", subtype="pdf", filename="bill.pdf")
    return message.as_bytes()


def photo() -> bytes:
    image = Image.new("RGB", (40, 30), "red")
    exif = Image.Exif()
    exif[0x010F], exif[0x0110], exif[0x0112] = "Canon", "EOS R5", 6
    exif.get_ifd(0x8769)[0x9003] = "2026:03:01 10:20:30"
    exif.get_ifd(0x8825).update({1: "N", 2: (52.0, 30.0, 0.0), 3: "W", 4: (13.0, 15.0, 36.0), 6: 35.5})
    out = io.BytesIO()
    image.save(out, "JPEG", exif=exif)
    return out.getvalue()


def zipped(members: dict[str, str | bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return out.getvalue()


def tarred(members: dict[str, bytes], mode: str = "w:gz") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # pyright: ignore
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        link = tarfile.TarInfo("link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    return out.getvalue()


def zip_bomb(member: str, size: int = 60_000_000) -> bytes:
    """A member that unpacks to a thousand times its size."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive, archive.open(member, "w") as file:
        for _ in range(size // 1_000_000):
            file.write(b" " * 1_000_000)
    return out.getvalue()


def mimetype_bomb(size: int = 60_000_000) -> bytes:
    """A few bytes that claim to be few unpacked, too, and are not: what tells an OpenDocument from a plain zip."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("mimetype", bytes(size))
    return out.getvalue().replace(size.to_bytes(4, "little"), (100).to_bytes(4, "little"))


def entity_bomb() -> str:
    names = [f'<!ENTITY e{number} "{f"&e{number - 1};" * 10}">' for number in range(1, 10)]
    return f'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY e0 "ha">{"".join(names)}]><r>&e9;</r>'


def endless_pdf() -> bytes:
    """A small file with a page that is very much work."""
    stream = zlib.compress(b"BT /F1 12 Tf " + b"(x) Tj 1 0 0 1 0 0 cm " * 2_000_000 + b" ET")
    return pdf_of([stream], b"/Filter /FlateDecode")


def huge_png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


def _saved(save: object) -> bytes:
    out = io.BytesIO()
    save(out)  # pyright: ignore
    return out.getvalue()
