"""What service managers are told: the right command and home, limits on restarts, quoting that holds, no secret."""

from __future__ import annotations

import plistlib
import re
import shlex
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from annabelle.cli.service_manager import Launchd, ServicePlan, Systemd
from annabelle.core.errors import CallerMistake

PATHS = st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=20).filter(
    str.isprintable
)


def plan(home: str = "/home/ada/.annabelle", python: str = "/opt/annabelle/bin/python") -> ServicePlan:
    return ServicePlan(python, Path(home), "/usr/bin:/bin", stop_seconds=30, user="ada")


def lines_of(unit: str, key: str) -> list[str]:
    return re.findall(rf"^{key}=(.*)$", unit, re.MULTILINE)


@pytest.mark.req("UX-04")
def test_a_unit_starts_the_hub_of_this_install_for_this_home():
    unit = Systemd(system=False).render(plan())
    assert lines_of(unit, "ExecStart") == ["/opt/annabelle/bin/python -P -m annabelle.hub"]
    assert lines_of(unit, "Environment") == ['"ANNABELLE_HOME=/home/ada/.annabelle"', '"PATH=/usr/bin:/bin"']
    assert lines_of(unit, "WantedBy") == ["default.target"]
    assert lines_of(unit, "User") == []


@pytest.mark.req("UX-04")
def test_a_unit_of_the_system_runs_as_the_owner_of_the_home():
    unit = Systemd(system=True).render(plan())
    assert lines_of(unit, "User") == ["ada"]
    assert lines_of(unit, "WantedBy") == ["multi-user.target"]


@pytest.mark.req("UX-04")
def test_a_hub_that_fails_is_started_again_within_limits_and_not_for_a_mistake():
    unit = Systemd(system=False).render(plan())
    assert lines_of(unit, "Restart") == ["on-failure"]
    assert int(lines_of(unit, "StartLimitBurst")[0]) <= 10
    assert int(lines_of(unit, "StartLimitIntervalSec")[0]) >= 60
    assert lines_of(unit, "RestartPreventExitStatus") == ["2 4"]
    assert lines_of(unit, "TimeoutStopSec") == ["30"]


def _unquoted(words: str) -> list[str]:
    """As systemd reads them: backslashes and quotes like a shell, then doubled specifiers and dollars."""
    return [word.replace("%%", "%").replace("$$", "$") for word in shlex.split(words)]


@given(name=PATHS)
def test_any_path_comes_out_of_a_unit_as_it_went_in(name: str):
    home, python = f"/h/{name}", f"/p/{name}/python"
    unit = Systemd(system=False).render(plan(home, python))
    (command,) = lines_of(unit, "ExecStart")
    assert _unquoted(command) == [python, "-P", "-m", "annabelle.hub"]
    assert Systemd(system=False).home_in(unit) == str(Path(home))


@given(name=PATHS)
def test_any_path_comes_out_of_a_job_as_it_went_in(name: str):
    home = f"/h/{name}"
    job = Launchd(system=False).render(plan(home))
    assert plistlib.loads(job.encode())["ProgramArguments"] == [
        "/opt/annabelle/bin/python",
        "-P",
        "-m",
        "annabelle.hub",
    ]
    assert Launchd(system=False).home_in(job) == str(Path(home))


def test_a_name_that_would_break_out_of_its_line_is_refused():
    with pytest.raises(CallerMistake, match="invisible"):
        Systemd(system=False).render(plan("/home/x\nExecStartPre=/bin/evil"))


@pytest.mark.req("UX-04")
def test_a_launchd_job_comes_back_after_a_failure_and_only_then():
    job = plistlib.loads(Launchd(system=False).render(plan()).encode())
    assert job["KeepAlive"] == {"SuccessfulExit": False}
    assert job["ThrottleInterval"] >= 10
    assert job["RunAtLoad"] is True
    assert "UserName" not in job
    assert plistlib.loads(Launchd(system=True).render(plan()).encode())["UserName"] == "ada"


@pytest.mark.parametrize("text", ["", "no unit", "<plist></plist>", '<?xml version="1.0"?><plist><array/></plist>'])
def test_a_file_that_says_nothing_of_a_home_has_none(text: str):
    assert Systemd(system=False).home_in(text) is None
    assert Launchd(system=False).home_in(text) is None
