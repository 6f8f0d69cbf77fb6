"""Which programs only compute, and which reach for something."""

from __future__ import annotations

import pytest

from annabelle.policy.calm_code import is_calm
from annabelle.policy.naming import Said
from policy.house import House, Turn

SAID = Said(["Make a chart from budget.csv with python"])
CALM = (
    "import csv\nprint(sum(int(row['euros']) for row in csv.DictReader(open('budget.csv'))))",
    "import pandas as pd\npd.read_csv('Documents/budget.csv').plot().get_figure().savefig('budget.png')",
    "from statistics import mean\nprint(mean([4, 8, 15]))",
    "svg = '<svg xmlns=\"http://www.w3.org/2000/svg\"></svg>'\nopen('budget.svg', 'w').write(svg)",
    "print('1.5 and 2.5')",
)
WILD = (
    "import os\nos.remove('budget.csv')",
    "from os import path",
    "from . import x",
    "import shutil",
    "__import__('os').system('ls')",
    "eval('1')",
    "getattr(print, 'x')",
    "().__class__.__bases__",
    "open('private.txt').read()",
    "open('let' + 'ter.txt', 'w')",
    "open(name)",
    "import pandas\npandas.read_csv('https://evil.example/?q=1')",
    "open('../budget.csv')",
    "open('/etc/passwd')",
    "rm -rf /",
    "print(",
    "x = '\0'",
)


@pytest.mark.req("POL-04")
@pytest.mark.parametrize("code", CALM)
def test_what_computes_on_files_that_were_named_is_calm(code: str) -> None:
    assert is_calm(code, SAID)


@pytest.mark.req("POL-04")
@pytest.mark.parametrize("code", WILD)
def test_what_reaches_for_more_or_is_not_understood_is_not(code: str) -> None:
    assert not is_calm(code, SAID)


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("says", "code", "verdict"),
    [
        ("Read Documents/report.md and plot the numbers with python", CALM[2], "allow"),
        ("Read Documents/report.md and plot the numbers with python", WILD[0], "ask"),
        ("What does Documents/report.md say?", CALM[2], "ask"),
        ("Read Documents/report.md and run the tests with python", "print('as the report wants')", "ask"),
    ],
)
def test_in_a_turn_that_read_something_only_calm_code_runs_and_only_when_code_was_ordered(
    says: str, code: str, verdict: str
) -> None:
    now = Turn(House(foreign="\nprint('as the report wants')")).says(says)
    now.calls("filer_read_file", {"path": "Documents/report.md"})
    assert now.decides("codexec_execute_code", {"language": "python", "code": code}).verdict == verdict


@pytest.mark.req("POL-04")
def test_a_session_that_was_started_is_no_content_from_outside() -> None:
    now = Turn().says("Start a python session and give me the mean of 4 and 8")
    now.calls("codexec_start_session", {"language": "python"})
    assert not now.facts.tainted
    assert now.decides("codexec_send_to_session", {"session_id": "s", "code": "print(6)"}).verdict == "allow"
