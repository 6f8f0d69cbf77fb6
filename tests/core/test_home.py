"""The home: where it is, what happens when it can not be written, files replaced whole."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from annabelle.core import home as home_module
from annabelle.core.errors import OperatorMistake
from annabelle.core.home import Home, write_atomically


def test_the_home_is_where_the_variable_says_else_in_the_users_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("ANNABELLE_HOME", str(tmp_path / "x"))
    assert Home.from_environment().root == tmp_path / "x"
    monkeypatch.delenv("ANNABELLE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Home.from_environment().root == tmp_path / ".annabelle"


def test_a_prepared_home_is_for_its_owner_only(tmp_path: Path):
    home = Home(tmp_path / "home").prepare()
    assert home.root.stat().st_mode & 0o777 == 0o700
    assert home.logs.is_dir()
    assert home.prepare() == home


@pytest.mark.req("PKG-02")
def test_a_home_below_a_file_is_refused_in_one_sentence(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OperatorMistake) as caught:
        Home(tmp_path / "file" / "home").prepare()
    assert str(tmp_path / "file" / "home") in caught.value.message
    assert "ANNABELLE_HOME" in (caught.value.hint or "")
    assert caught.value.exit_code == 2


@pytest.mark.req("PKG-02")
def test_a_home_without_write_permission_is_refused_in_one_sentence(tmp_path: Path):
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    # Root may write everywhere, so whoever runs the tests as root tries as nobody.
    program = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from annabelle.core.errors import OperatorMistake\n"
        "from annabelle.core.home import Home\n"
        "os.getuid() or os.setresuid(65534, 65534, 65534)\n"
        "try:\n    Home(Path(sys.argv[1])).prepare()\n"
        "except OperatorMistake as mistake:\n    print(mistake.message)\n"
    )
    for folder in [tmp_path, *tmp_path.parents]:
        if folder.stat().st_uid == os.getuid() and str(folder).startswith(("/tmp/", str(tmp_path))):
            folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run([sys.executable, "-c", program, str(locked / "home")], capture_output=True, text=True)
    locked.chmod(0o700)
    assert done.stderr == ""
    assert "can not be written: Permission denied." in done.stdout


def test_a_file_is_replaced_whole(tmp_path: Path):
    path = tmp_path / "folder" / "file.json"
    write_atomically(path, "old")
    write_atomically(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [entry.name for entry in path.parent.iterdir()] == ["file.json"]


def test_a_write_that_fails_leaves_the_old_file_and_no_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "file.json"
    write_atomically(path, "old")

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(home_module.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["file.json"]
