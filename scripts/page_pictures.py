"""Takes the pictures of the page for the documentation: every view, on a desktop and on a phone.

PYTHONPATH=tests python scripts/page_pictures.py [FOLDER]
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import expect, sync_playwright

from browser.browsing import DESKTOP, PHONE, launch, visiting
from browser.sample_home import fill
from browser.test_accessibility import VIEWS
from hub.hubs import HubProcess, fresh_home
from support.scripted_model import ScriptedServer

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home, ScriptedServer() as model, sync_playwright() as playwright:
        hub = HubProcess(fresh_home(Path(home)), model.openai_url).start()
        browser = launch(playwright)
        try:
            fill(hub, model)
            trace = hub.http.get("/traces").json()["turns"][-1]["traceId"]
            places = {**dict(zip(VIEWS, VIEWS, strict=True)), "goal": "goals/1", "trace": f"traces/{trace}"}
            for name, viewport, scheme in (("desktop", DESKTOP, "light"), ("phone", PHONE, "dark")):
                with visiting(browser, hub, viewport=viewport, color_scheme=scheme) as visit:
                    visit.sign_in()
                    for view, place in places.items():
                        page = visit.go(place)
                        expect(page.get_by_text("Loading …").filter(visible=True)).to_have_count(0)
                        page.wait_for_timeout(300)
                        page.screenshot(path=folder / f"{view}-{name}.png")
        finally:
            browser.close()
            hub.end()


if __name__ == "__main__":
    main()
