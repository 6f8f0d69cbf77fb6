"""Files in the chat: shown, saved with their bytes and name, and dropped in whatever they are called (UX-02)."""

from __future__ import annotations

import struct
import zlib

import pytest
from playwright.sync_api import Page, expect

from browser.browsing import Visit
from support.scripted_model import Call, Reply, Rule, ScriptedServer

CONTENT = bytes(range(256)) * 40


def make_png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\x40\x80\xc0" * width) * height
    about = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", about) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def have_called(visit: Visit, model: ScriptedServer, tool: str, arguments: dict[str, object], answer: str) -> Page:
    """Say something that the model answers with this call."""
    call = Reply(tool_calls=[Call(name=tool, arguments=arguments)])
    model.rules(Rule(match=answer, results=0, reply=call), Rule(match=answer, reply=Reply(text=f"{answer} is there.")))
    visit.page.get_by_label("Your message").fill(f"Please see to {answer}")
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator(".message.agent:not(.live)").get_by_text(f"{answer} is there.")).to_be_visible()
    return visit.page


@pytest.mark.req("UX-02")
def test_a_picture_of_the_workspace_is_shown(visit: Visit, model: ScriptedServer) -> None:
    (visit.hub.home.workspace / "sky.png").write_bytes(make_png(30, 20))
    visit.sign_in()
    page = have_called(visit, model, "filer_copy_file", {"source": "sky.png", "destination": "Über uns.png"}, "sky")
    picture = page.get_by_role("img", name="Über uns.png")
    expect(picture).to_be_visible()
    assert picture.evaluate("(one) => [one.naturalWidth, one.naturalHeight]") == [30, 20]
    page.reload()
    expect(picture).to_be_visible()
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02")
@pytest.mark.parametrize(
    ("name", "saved"),
    [
        ("Grüße an Łukasz 日本.bin", "Grüße an Łukasz 日本.bin"),
        ("it's 100% & more #1?.bin", "it's 100% & more #1_.bin"),
        ('a "quoted" name.bin', "a _quoted_ name.bin"),
    ],
    ids=["umlauts", "signs", "quotes"],
)
def test_a_file_is_saved_with_its_bytes_and_its_name(
    visit: Visit, model: ScriptedServer, name: str, saved: str
) -> None:
    """What no file on some system may have in its name is replaced by the browser itself."""
    (visit.hub.home.workspace / name).write_bytes(CONTENT)
    visit.sign_in()
    page = have_called(visit, model, "filer_copy_file", {"source": name, "destination": f"out/{name}"}, saved[:3])
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download").last.click()
    assert downloading.value.suggested_filename == saved
    assert downloading.value.path().read_bytes() == CONTENT
    assert (visit.foreign, visit.errors) == ([], [])


@pytest.mark.req("UX-02")
def test_a_name_with_a_newline_adds_no_header(visit: Visit) -> None:
    name = 'two"\r\nX-More: 1.bin'
    (visit.hub.home.workspace / name).write_bytes(CONTENT)
    answer = visit.hub.http.get("/files", params={"path": name})
    assert answer.content == CONTENT
    assert "x-more" not in answer.headers
    assert answer.headers["Content-Disposition"].startswith("attachment; filename*=")


@pytest.mark.req("UX-02")
def test_a_folder_is_not_offered_as_a_file(visit: Visit, model: ScriptedServer) -> None:
    (visit.hub.home.workspace / "folder").mkdir()
    visit.sign_in()
    page = have_called(visit, model, "filer_list_files", {"path": "folder"}, "folder")
    expect(page.locator(".tool").last).to_contain_text("filer list files")
    expect(page.locator(".tool").last.get_by_role("button", name="Download")).to_have_count(0)


@pytest.mark.req("UX-02")
@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "a) and (b.txt", "two\nlines.txt", "   .txt", "日" * 60 + ".txt", ".", "con:<>|?*.txt"],
)
def test_a_file_of_any_name_is_dropped_sent_and_offered_again(visit: Visit, model: ScriptedServer, name: str) -> None:
    said = f"Look at this file, <{name.encode().hex()[:12]}>"
    model.rules(Rule(match="this file", reply=Reply(text=f"Thanks: {said}")))
    page = visit.sign_in()
    put = "([name, text]) => { const d = new DataTransfer(); d.items.add(new File([text], name)); return d }"
    page.dispatch_event(".conversation", "drop", {"dataTransfer": page.evaluate_handle(put, [name, "What is in it."])})
    chip = page.locator(".attached .badge")
    expect(chip).not_to_contain_text("…")
    shown = chip.inner_text()
    received = visit.hub.home.workspace / "received"
    newest = max(received.iterdir(), key=lambda path: path.stat().st_mtime_ns)
    assert (newest.name.endswith(shown), newest.read_text()) == (True, "What is in it.")
    page.get_by_label("Your message").fill(said)
    page.keyboard.press("Enter")
    own = page.locator(".message.own").filter(has_text=said)
    expect(own).to_contain_text(shown)
    # The log moves on with the answer. A button that moves while it is pressed is not pressed.
    expect(page.locator(".message.agent:not(.live)").filter(has_text=f"Thanks: {said}")).to_be_visible()
    with page.expect_download() as downloading:
        own.get_by_role("button", name="Download").click()
    assert downloading.value.path().read_text() == "What is in it."
    assert downloading.value.suggested_filename == shown
    assert (visit.foreign, visit.errors) == ([], [])


def test_a_file_dropped_beside_a_conversation_does_not_replace_the_page(visit: Visit) -> None:
    page = visit.sign_in()
    is_left_to_the_browser = [
        page.evaluate(
            f"""() => {{ const d = new DataTransfer(); {put};
            const drop = new DragEvent("drop", {{ dataTransfer: d, bubbles: true, cancelable: true }});
            return document.querySelector("header").dispatchEvent(drop) }}"""
        )
        for put in ("d.items.add(new File(['x'], 'a.txt'))", "d.setData('text/plain', 'words')")
    ]
    assert is_left_to_the_browser == [False, True]
