"""The installer: clear about what is missing, quick when nothing changed, safe to interrupt and to start twice."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.timing import seconds

# Stands in for uv: makes the environment it is asked for, and writes down what it did.
FAKE_UV = """#!/bin/sh
echo "$*" >> "$CALLS"
case "$1" in
    --version) exit 0 ;;
    venv) for venv; do :; done; mkdir -p "$venv/bin"; ln -sf "$REAL_PYTHON" "$venv/bin/python"; exit 0 ;;
esac
case "$*" in *"pip sync"*) [ -e "$BREAK" ] && exit 1 ;; esac
exit 0
"""


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A small checkout with the real installer and a stand-in for uv."""
    copy = tmp_path / "checkout"
    for folder in ("scripts", "requirements"):
        shutil.copytree(root / folder, copy / folder)
    shutil.copy(root / "pyproject.toml", copy)
    (copy / "src").mkdir()
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "uv").write_text(FAKE_UV)
    (tools / "uv").chmod(0o755)
    return copy


def environment(checkout: Path) -> dict[str, str]:
    tools = checkout.parent / "tools"
    return {
        "PATH": f"{tools}:/usr/bin:/bin",
        "PYTHON": sys.executable,
        "REAL_PYTHON": sys.executable,
        "CALLS": str(checkout.parent / "calls"),
        "BREAK": str(checkout.parent / "break"),
    }


def install(checkout: Path, what: str, **changes: str) -> subprocess.CompletedProcess[str]:
    known = environment(checkout) | changes
    return subprocess.run(
        ["/bin/sh", checkout / "scripts" / "install", what], env=known, capture_output=True, text=True
    )


def syncs(checkout: Path) -> list[str]:
    calls = checkout.parent / "calls"
    lines = calls.read_text().splitlines() if calls.exists() else []
    return [line.rpartition("/")[2] for line in lines if line.startswith("pip sync")]


@pytest.mark.req("PKG-01")
def test_everything_is_installed_by_hash_once_and_again_only_when_a_requirement_changes(checkout: Path):
    assert install(checkout, "run").returncode == 0
    assert install(checkout, "run").returncode == 0
    assert syncs(checkout) == ["run.txt"]
    calls = (checkout.parent / "calls").read_text()
    assert "pip sync --python" in calls
    assert "--require-hashes" in calls
    with (checkout / "requirements" / "run.txt").open("a") as file:
        file.write("# changed\n")
    assert install(checkout, "run").returncode == 0
    assert syncs(checkout) == ["run.txt", "run.txt"]


@pytest.mark.req("PKG-01")
def test_an_interrupted_install_is_done_again(checkout: Path):
    (checkout.parent / "break").touch()
    broken = install(checkout, "run")
    assert broken.returncode == 1
    assert "run the same command again" in broken.stderr
    assert not (checkout / ".venv" / ".installed-run").exists()
    (checkout.parent / "break").unlink()
    assert install(checkout, "run").returncode == 0
    assert syncs(checkout) == ["run.txt", "run.txt"]


def test_a_checkout_with_the_tests_environment_keeps_it_when_annabelle_is_run(checkout: Path):
    assert install(checkout, "test").returncode == 0
    with (checkout / "requirements" / "run.txt").open("a") as file:
        file.write("# changed\n")
    assert install(checkout, "run").returncode == 0
    assert set(syncs(checkout)) == {"test.txt", "external.txt"}


def test_two_installs_at_once_do_the_work_once(checkout: Path):
    started = [
        subprocess.Popen(["/bin/sh", checkout / "scripts" / "install", "run"], env=environment(checkout))
        for _ in range(3)
    ]
    assert [process.wait(seconds(60)) for process in started] == [0, 0, 0]
    assert syncs(checkout) == ["run.txt"]


@pytest.mark.req("PKG-02")
def test_a_missing_program_fails_by_its_name(checkout: Path):
    (checkout / "requirements" / "programs.txt").write_text(
        "no-such-program a-package for the test\nno-faster-program? another-package for speed\n"
    )
    # Neither apt-get nor sudo is on this PATH, so nothing can be installed.
    missing = install(checkout, "programs", PATH=str(checkout.parent / "tools"))
    assert missing.returncode == 2
    assert "no-such-program" in missing.stderr
    assert "apt-get install a-package)" in missing.stderr


@pytest.mark.req("PKG-02")
def test_a_distribution_without_a_program_that_is_not_needed_has_the_others(checkout: Path):
    tools = checkout.parent / "tools"
    (checkout / "requirements" / "programs.txt").write_text(
        "needed a-package to work\nfaster? another-package for speed\n"
    )
    scripts = {
        "apt-get": f'case "$*" in *another-package*) exit 100 ;; *install*) ln -s /bin/true {tools}/needed ;; esac',
        "sudo": 'shift; exec "$@"',
    }
    for name, script in scripts.items():
        (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "$CALLS"\n{script}\n')
        (tools / name).chmod(0o755)
    known = {"PATH": f"{tools}:/bin", "PYTHON": sys.executable}
    assert install(checkout, "programs", **known).returncode == 0
    tried = (checkout.parent / "calls").read_text()
    assert "another-package" in tried
    assert install(checkout, "programs", **known).returncode == 0
    assert (checkout.parent / "calls").read_text() == tried, "what can be done without is tried once"


@pytest.mark.req("PKG-02")
def test_the_programs_the_tests_need_are_named_when_the_path_has_none(checkout: Path):
    missing = install(checkout, "programs", PATH=str(checkout.parent / "tools"))
    assert missing.returncode == 2
    assert "git" in missing.stderr


def test_the_programs_the_tests_need_are_here(checkout: Path):
    assert install(checkout, "programs", PATH=os.environ["PATH"]).returncode == 0


@pytest.mark.req("PKG-02")
@pytest.mark.parametrize("chosen", ["", "old-python"])
def test_a_python_that_is_too_old_or_missing_gets_one_clear_sentence(checkout: Path, chosen: str):
    tools = checkout.parent / "old"
    tools.mkdir()
    for name in ("python3", "old-python"):
        (tools / name).write_text("#!/bin/sh\nexit 1\n")
        (tools / name).chmod(0o755)
    refused = install(checkout, "run", PATH=str(tools), PYTHON=chosen)
    assert refused.returncode == 2
    assert "Annabelle needs Python 3.11 or newer" in refused.stderr
    assert len(refused.stderr.splitlines()) == 2


def test_uv_is_fetched_into_a_private_place_where_the_machine_has_none(checkout: Path, tmp_path: Path):
    # A python whose pip, as the one of a fresh machine would, brings uv; its venv module is missing, as on Debian.
    python = tmp_path / "python-without-venv"
    python.write_text(
        "#!/bin/sh\n"
        'case "$*" in\n'
        '    *"-m venv"*) exit 1 ;;\n'
        '    *"-m pip install"*"--target"*) mkdir -p "$5/bin"; cp "$FAKE_UV" "$5/bin/uv" ;;\n'
        '    *"-m pip"*) exit 1 ;;\n'
        f'    *) exec "{sys.executable}" "$@" ;;\n'
        "esac\n"
    )
    python.chmod(0o755)
    program = (
        "import sys; sys.argv[0] = 'install.py'; sys.path.insert(0, sys.argv[1] + '/scripts'); import install;"
        "sys.executable = sys.argv[2]; print(install.find_uv(__import__('os').environ))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, checkout, python],
        env=environment(checkout) | {"PATH": "/nowhere:/usr/bin:/bin", "FAKE_UV": str(tmp_path / "tools" / "uv")},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(checkout / ".venv-uv" / "bin" / "uv"), done.stderr


@pytest.mark.parametrize(
    ("asked", "slow", "chosen"), [("", "first", "other"), ("", "other", "first"), ("yes", "first", "first")]
)
def test_a_python_that_takes_much_more_cpu_than_another_is_used_only_if_it_was_asked_for(
    checkout: Path, tmp_path: Path, asked: str, slow: str, chosen: str
):
    pythons = {"first": tmp_path / "first", "other": tmp_path / "path" / "python3"}
    pythons["other"].parent.mkdir()
    for name, path in pythons.items():
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {"-X tracemalloc=9" * (name == slow)} "$@"\n')
        path.chmod(0o755)
    pythons["none"] = tmp_path / "path" / "python3.12"
    pythons["none"].write_text("#!/bin/sh\necho Welcome\n")
    pythons["none"].chmod(0o755)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1] + '/scripts'); import install;"
        "sys.executable = sys.argv[2]; print(install.choose_python())"
    )
    known = environment(checkout) | {"PATH": str(tmp_path / "path"), "PYTHON": asked}
    argv = [sys.executable, "-c", program, checkout, pythons["first"]]
    done = subprocess.run(argv, env=known, capture_output=True, text=True)
    # The other one is named by what it runs.
    expected = pythons["first"] if chosen == "first" else sys.executable
    assert done.stdout.strip() == str(expected), done.stderr
    assert ("times the CPU" in done.stderr) == (chosen == "other")
