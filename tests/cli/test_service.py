"""`annabelle service`: installed, started, replaced and removed, with a stand-in for systemctl that notes its calls."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from annabelle.cli import service, service_manager
from annabelle.cli.app import main
from annabelle.cli.service_manager import Launchd, Systemd
from annabelle.core.errors import OperatorMistake
from annabelle.core.home import Home
from annabelle.core.settings_file import SettingsFile
from cli.terminal import environment

UNIT = "annabelle.service"
STAND_IN = Path(__file__).with_name("stand_in_systemctl.py")


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine with a systemd of its own: where its units are, and what its systemctl was asked."""

    config: Path
    state: Path

    @property
    def unit(self) -> Path:
        return self.config / "systemd" / "user" / UNIT

    def asked(self) -> list[list[str]]:
        """Everything but questions."""
        file = self.state / "asked"
        calls = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [call for call in calls if not any(word.startswith("is-") for word in call)]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    bin_folder, config, state = (tmp_path / name for name in ("bin", "config", "state"))
    for folder in (bin_folder, config, state):
        folder.mkdir()
    program = bin_folder / "systemctl"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
    program.chmod(0o755)
    for name, value in {
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "XDG_CONFIG_HOME": str(config),
        "STAND_IN_STATE": str(state),
    }.items():
        monkeypatch.setenv(name, value)
    # Whoever runs the tests may be root, and root's units would go to the real machine.
    monkeypatch.setattr(service, "service_manager", lambda: Systemd(system=False))
    return Machine(config, state)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """`annabelle service …` in this process: exit code, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["annabelle", "service", *arguments])
        with pytest.raises(SystemExit) as left:
            main()
        shown = capsys.readouterr()
        return int(left.value.code or 0), shown.out, shown.err

    return run


@pytest.fixture
def offline(machine: Machine) -> Machine:
    (machine.state / "offline").touch()
    return machine


@pytest.mark.req("UX-04")
def test_show_prints_the_unit_and_touches_nothing(machine: Machine, command: Run, home: Home):
    code, shown, _ = command("show")
    assert code == 0
    assert f"ExecStart={sys.executable} -P -m annabelle.hub" in shown
    assert f'Environment="ANNABELLE_HOME={home.root}"' in shown
    told = json.loads(command("show", "--json")[1])
    assert (told["path"], told["unit"]) == (str(machine.unit), shown)
    assert not machine.unit.exists()
    assert machine.asked() == []


@pytest.mark.req("UX-04")
def test_install_starts_the_unit_and_remove_undoes_it(machine: Machine, command: Run, home: Home):
    settings = SettingsFile(home.settings_file)
    for name in ("ANNABELLE_PORT", "THINKER_PORT", "THINKER_WARM_SPARE"):
        settings.set(name, environment(home)[name])
    code, shown, errors = command("install")
    assert code == 0, errors
    assert "Annabelle runs at http://127.0.0.1:" in shown
    note = json.loads(home.hub_file.read_text())
    assert str(note["pid"]) == (machine.state / "pid").read_text()
    assert machine.asked() == [
        ["--user", "daemon-reload"],
        ["--user", "enable", UNIT],
        ["--user", "restart", UNIT],
    ]
    code, shown, _ = command("status", "--json")
    assert (code, json.loads(shown)["state"], json.loads(shown)["home"]) == (0, "active", str(home.root))
    assert command("remove")[0] == 0
    assert not machine.unit.exists()
    assert not home.hub_file.exists()
    assert machine.asked()[3:] == [["--user", "disable", "--now", UNIT], ["--user", "daemon-reload"]]


def test_a_service_that_can_not_start_says_so(machine: Machine, command: Run, home: Home):
    home.database_file.mkdir()  # a folder where a file belongs
    SettingsFile(home.settings_file).set("ANNABELLE_PORT", "0")
    code, _, errors = command("install")
    assert code == 1
    assert "did not start: it is failed" in errors
    assert "hub.log" in errors
    assert command("remove")[0] == 0


@pytest.mark.req("UX-04")
def test_where_systemd_can_not_be_reached_the_next_commands_are_said(offline: Machine, command: Run):
    code, shown, _ = command("install")
    assert code == 0
    assert offline.unit.stat().st_mode & 0o777 == 0o644
    assert offline.asked() == []
    assert [line.strip() for line in shown.splitlines() if line.startswith("  ")] == [
        "systemctl --user daemon-reload",
        f"systemctl --user enable {UNIT}",
        f"systemctl --user restart {UNIT}",
    ]
    told = json.loads(command("install", "--json")[1])
    assert (told["started"], told["next"][-1]) == (False, ["systemctl", "--user", "restart", UNIT])
    code, shown, _ = command("status")
    assert code == 5
    assert "can not be asked" in shown
    told = json.loads(command("remove", "--json")[1])
    assert (told["removed"], told["next"][0]) == (True, ["systemctl", "--user", "disable", "--now", UNIT])
    assert not offline.unit.exists()


def test_without_any_systemctl_the_unit_is_still_written(
    machine: Machine, command: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("systemctl") is None
    code, shown, _ = command("install")
    assert code == 0
    assert machine.unit.exists()
    assert "systemctl --user daemon-reload" in shown


@pytest.mark.req("UX-04", "TRC-03")
def test_no_secret_is_in_the_unit_and_a_setting_of_the_terminal_is_named(
    offline: Machine, command: Run, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("GROQ_API_KEY", "gsk_lovelace1815lovelace")
    _, shown, _ = command("install")
    assert "lovelace" not in offline.unit.read_text() + shown
    assert "annabelle config set GROQ_API_KEY" in shown


def test_a_refusal_of_systemd_is_told_in_its_own_words(machine: Machine, command: Run):
    (machine.state / "refuses").write_text("enable")
    code, _, errors = command("install")
    assert code == 1
    assert "systemctl --user enable annabelle.service` failed: Failed to do that: Access denied" in errors


def test_the_service_of_another_home_is_not_replaced(offline: Machine, command: Run, monkeypatch: pytest.MonkeyPatch):
    command("install")
    before = offline.unit.read_text()
    monkeypatch.setenv("ANNABELLE_HOME", str(offline.state / "other"))
    code, _, errors = command("install")
    assert code == 2
    assert "another home" in errors
    assert offline.unit.read_text() == before


def test_without_a_service_status_and_remove_say_so(machine: Machine, command: Run):
    code, shown, _ = command()
    assert code == 5
    assert "annabelle service install" in shown
    assert command("remove")[:2] == (0, "No service is installed.\n")
    assert machine.asked() == []


def test_a_folder_that_can_not_be_written_is_one_sentence(offline: Machine, command: Run):
    (offline.config / "systemd").write_text("a file where a folder belongs")
    code, _, errors = command("install")
    assert code == 3
    assert "could not be written" in errors
    assert len(errors.splitlines()) == 1


@pytest.mark.req("UX-04")
@pytest.mark.parametrize(
    ("platform", "root", "kind", "path"),
    [
        ("linux", True, Systemd, "/etc/systemd/system/annabelle.service"),
        ("linux", False, Systemd, "{home}/.config/systemd/user/annabelle.service"),
        ("darwin", True, Launchd, "/Library/LaunchDaemons/local.annabelle.hub.plist"),
        ("darwin", False, Launchd, "{home}/Library/LaunchAgents/local.annabelle.hub.plist"),
    ],
)
def test_each_system_has_its_place_for_the_user_and_for_root(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, root: bool, kind: type[object], path: str
):
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(os, "geteuid", lambda: 0 if root else 1000)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    found = service_manager.service_manager()
    assert isinstance(found, kind)
    assert str(found.file) == path.format(home=tmp_path)


def test_a_system_without_either_is_told(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "freebsd14")
    with pytest.raises(OperatorMistake, match="freebsd14"):
        service_manager.service_manager()


def test_launchd_is_given_the_job_of_this_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(service_manager, "read_command", lambda _argv: "")
    monkeypatch.setattr(os, "getuid", lambda: 501)
    job = str(tmp_path / "Library" / "LaunchAgents" / "local.annabelle.hub.plist")
    agent = Launchd(system=False)
    assert agent.enable() == [["launchctl", "bootstrap", "gui/501", job]]
    assert agent.start() == [["launchctl", "kickstart", "gui/501/local.annabelle.hub"]]
    assert agent.disable() == []
    monkeypatch.setattr(Launchd, "state", lambda _self: "active")
    assert agent.disable() == [["launchctl", "bootout", "gui/501/local.annabelle.hub"]]
    assert agent.enable()[0] == agent.disable()[0]
