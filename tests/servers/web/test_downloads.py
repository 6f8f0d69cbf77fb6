"""Files that pages send."""

from __future__ import annotations

import pytest

from annabelle.servers.web import browser_session
from annabelle.servers.web.browser_launcher import INCOMING, profile_folder
from servers.web.browsing import Web
from servers.web.pages import Site


@pytest.mark.req("SRV-BRW")
async def test_a_download_goes_to_the_workspace(web: Web, site: Site) -> None:
    site.pages |= {
        "/": "<a href=/report download>Report</a>",
        "/report": (
            200,
            {"Content-Disposition": "attachment; filename=\"r.pdf\"; filename*=UTF-8''%C3%A4.pdf"},
            b"%PDF",
        ),
    }
    await web("navigate", url=f"{site.url}/")
    ref = await web.ref('link "Report"')
    done = await web("click", ref=ref)
    assert await web.told("Downloaded", done.news) == "Downloaded Downloads/ä.pdf (4 bytes)."
    assert (web.workspace / "Downloads/ä.pdf").read_bytes() == b"%PDF"
    again = await web("click", ref=ref)
    assert await web.told("Downloaded", again.news) == "Downloaded Downloads/ä (2).pdf (4 bytes).", (
        "nothing is replaced"
    )


@pytest.mark.req("SRV-BRW")
async def test_an_address_that_is_a_file_is_downloaded(web: Web, site: Site) -> None:
    site.pages["/data.bin"] = (200, {"Content-Type": "application/octet-stream"}, b"\x00\x01")
    done = await web("navigate", url=f"{site.url}/data.bin")
    assert done.did == "The address is a file, which is downloaded."
    await web.told("Downloaded", done.news)
    assert (web.workspace / "Downloads/data.bin").read_bytes() == b"\x00\x01"


@pytest.mark.req("SRV-BRW", "SRV-ALL")
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("..%2F..%2Fconfig%2Fsettings.env", "settings.env"),
        ("a%00%1b%E2%80%AEtxt.doc", "txt.doc"),
        (".hidden", "hidden"),
    ],
)
async def test_a_name_from_outside_is_cleaned(web: Web, site: Site, given: str, kept: str) -> None:
    site.pages["/file"] = (200, {"Content-Disposition": f"attachment; filename*=UTF-8''{given}"}, b"x")
    done = await web("navigate", url=f"{site.url}/file")
    path = (await web.told("Downloaded ", done.news)).split(" (")[0].removeprefix("Downloaded ")
    assert path.startswith("Downloads/")
    assert path.count("/") == 1
    assert path.endswith(kept)
    assert path.isprintable()
    assert (web.workspace / path).read_bytes() == b"x"


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_program_is_refused_and_said_so(web: Web, site: Site) -> None:
    site.pages["/setup"] = (200, {"Content-Disposition": "attachment; filename=setup.exe"}, b"MZ")
    done = await web("navigate", url=f"{site.url}/setup")
    await web.told("setup.exe was not kept", done.news)
    assert not (web.workspace / "Downloads/setup.exe").exists()


@pytest.mark.req("SRV-BRW", "SRV-ALL")
async def test_a_file_that_is_too_large_is_stopped(web: Web, site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser_session, "MAX_BYTES", 1000)
    site.pages["/large"] = (200, {"Content-Disposition": "attachment; filename=large.bin"}, b"x" * 5000)
    done = await web("navigate", url=f"{site.url}/large")
    await web.told("larger than 1000 bytes", done.news)
    assert not (web.workspace / "Downloads/large.bin").exists()
    incoming = profile_folder(web.house.config.profiles, "people") / INCOMING
    assert not list(incoming.iterdir()), "nothing is left where it came in"
