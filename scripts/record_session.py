"""Records the first minutes with Annabelle in a real terminal and writes them into README.md.

`PYTHONPATH=tests .venv/bin/python scripts/record_session.py` writes; `--print` only shows. An empty home, no key, no
network: what stands in the README is what a newcomer sees.
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from annabelle.core.home import Home
from cli.terminal import Terminal, environment
from support.few_servers import EVERY_SERVER

README = Path(__file__).resolve().parent.parent / "README.md"
BEGIN, END = "<!-- session -->\n```text\n", "```\n<!-- end of session -->"
COLUMNS = 100
LINES = (
    "what files do I have?",
    "put oat milk on my shopping list",
    "what's on my shopping list?",
    "remember that my dog is called Rex",
    "what is my dog called?",
    "convert 12 miles to km",
    "who wrote Faust?",
)
_ESCAPE = re.compile(r"\x1b\[(\d*)([A-Za-z])|\x1b\[[\d;]*m|\x1b\[\?\d+[hl]|\r|\n|[^\x1b\r\n]+")


def render(shown: str) -> str:
    """The lines that are left on the screen, of the few movements that Annabelle and readline make."""
    lines, row, column = [""], 0, 0
    for found in _ESCAPE.finditer(shown):
        piece, count, kind = found[0], found[1], found[2]
        if piece == "\r":
            column = 0
        elif piece == "\n":
            row, column = row + 1, 0
            lines += [""] * (row + 1 - len(lines))
        elif kind == "K":
            lines[row] = lines[row][:column]
        elif kind == "J":
            lines[row:] = [lines[row][:column]]
        elif kind == "A":
            row = max(0, row - int(count or 1))
        elif not piece.startswith("\x1b"):
            text = piece.replace("\x07", "")
            lines[row] = lines[row][:column].ljust(column) + text + lines[row][column + len(text) :]
            column += len(text)
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def record(folder: Path) -> str:
    known = environment(Home(folder / ".annabelle"), **EVERY_SERVER)
    known = {name: value for name, value in known.items() if not name.startswith(("THINKER_LLM", "COMPATIBLE"))}
    nobody = {"OLLAMA_BASE_URL": "http://127.0.0.1:9", "LMSTUDIO_BASE_URL": "http://127.0.0.1:9/v1"}
    # Several threads wait for each other wherever something else computes, too.
    screen = Terminal(known | nobody | {"EMBEDDED_THREADS": "1"}, columns=COLUMNS)
    try:
        shown = screen.expect(r"\[Y/n\] ")
        screen.press("n\n")
        shown += screen.expect("› ")
        for line in LINES:
            screen.press(f"{line}\n")
            shown += screen.expect(r"\n› ")
        screen.press("\x04")
        shown += screen.expect("Bye")
        screen.wait()
    finally:
        screen.close()
    return f"$ annabelle\n{render(shown)}."


def comparable(session: str) -> str:
    """Without times and sizes, which differ from run to run."""
    return re.sub(r"\d+ ms|\d{4}-\d\d-\d\d", "…", session)


def read_recorded(text: str) -> str:
    return text.partition(BEGIN)[2].partition(END)[0].rstrip("\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        session = record(Path(folder))
    if "--print" in sys.argv:
        sys.stdout.write(f"{session}\n")
        return
    text = README.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    if not begin:
        raise SystemExit(f"{README} has no place for the session.")
    README.write_text(f"{before}{BEGIN}{session}\n{END}{rest.partition(END)[2]}", encoding="utf-8")


if __name__ == "__main__":
    main()
