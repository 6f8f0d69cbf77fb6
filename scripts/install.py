"""Bring `.venv` to what the requirement files say: `install.py run`, `test` or `programs`.

`install.py bench` makes `.venv-bench`: other people's software that a benchmark is held against.

Safe to interrupt (the stamp is written last), safe to start twice at once (a lock), quick when nothing changed (a
digest). It needs Python and pip only: uv is fetched into a private place when the machine has none. The machine's own
choice of package index is passed on as it is.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
VENV, EXTERNAL, TOOLS = ROOT / ".venv", ROOT / ".venv-external", ROOT / ".venv-uv"
BENCH = ROOT / ".venv-bench"


# Says how much CPU a Python takes for a little work, and where it is, if it has what Annabelle and its packages need.
PROBE = """
import pathlib, sqlite3, ssl, sys, sysconfig, time
assert sys.version_info >= (3, 11) and pathlib.Path(sysconfig.get_path("include"), "Python.h").exists()
class Number:
    def __init__(self, value):
        self.value = value
    def increase(self):
        return Number(self.value + 1)
def work():
    started = time.process_time()
    sum(Number(value).increase().value for value in range(50_000))
    return time.process_time() - started
print(min(work() for _ in range(5)), sys.executable)
"""


class Failure(Exception):
    """What went wrong, and what to do about it, in a sentence each."""


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def run(argv: list[str | Path], environment: Mapping[str, str]) -> None:
    subprocess.run([str(part) for part in argv], check=True, cwd=ROOT, env=dict(environment), stdin=subprocess.DEVNULL)


def index_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """uv reads no pip settings, so a machine that tells only pip where packages come from is understood here."""
    known = dict(environment)
    if not {"UV_DEFAULT_INDEX", "UV_INDEX_URL", "UV_INDEX", "UV_CONFIG_FILE"} & known.keys():
        asked = subprocess.run(
            [sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True
        )
        index = known.get("PIP_INDEX_URL") or (asked.stdout.strip() if asked.returncode == 0 else "")
        if index:
            known["UV_DEFAULT_INDEX"] = index
    if "PIP_CERT" in known:
        known.setdefault("SSL_CERT_FILE", known["PIP_CERT"])
    return known


def find_uv(environment: Mapping[str, str]) -> Path:
    """The machine's uv, or a private one."""
    for candidate in (shutil.which("uv"), TOOLS / "bin" / "uv"):
        if candidate and _works(Path(candidate)):
            return Path(candidate)
    say("Fetching uv, which installs everything else …")
    wanted = ["--quiet", "--require-hashes", "-r", str(REQUIREMENTS / "uv.txt")]
    shutil.rmtree(TOOLS, ignore_errors=True)
    try:
        # Many distributions let pip install into a virtual environment only.
        run([sys.executable, "-m", "venv", TOOLS], environment)
        run([TOOLS / "bin" / "python", "-m", "pip", "install", *wanted], environment)
    except subprocess.CalledProcessError:
        # And some split the venv module off; a target folder needs neither.
        shutil.rmtree(TOOLS, ignore_errors=True)
        outside = {**environment, "PIP_REQUIRE_VIRTUALENV": "0"}
        run([sys.executable, "-m", "pip", "install", "--target", TOOLS, *wanted], outside)
    if not _works(TOOLS / "bin" / "uv"):
        raise Failure("uv could not be fetched. Install it by hand (https://docs.astral.sh/uv/) and try again.")
    return TOOLS / "bin" / "uv"


def _works(program: Path) -> bool:
    try:
        return subprocess.run([program, "--version"], capture_output=True).returncode == 0
    except OSError:
        return False


def digest(profile: str) -> str:
    """Changes when anything that decides what is installed does."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    parts = [profile, str(ROOT), sys.version, repr(project["project"]), repr(project["build-system"])]
    parts += [(REQUIREMENTS / f"{name}.txt").read_text(encoding="utf-8") for name in (profile, "build")]
    if profile == "test":
        parts.append((REQUIREMENTS / "external.txt").read_text(encoding="utf-8"))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def stamp(profile: str) -> Path:
    return VENV / f".installed-{profile}"


def installed(profile: str) -> bool:
    try:
        return stamp(profile).read_text() == digest(profile)
    except OSError:
        return False


@functools.cache
def choose_python() -> str:
    """The Python that was asked for or comes first, unless this takes a third more CPU than another one.

    One that was compiled on the machine often lacks the optimisation of a distribution's, and everything Annabelle
    ever does takes longer.
    """
    if os.environ.get("PYTHON"):
        return sys.executable
    folders = dict.fromkeys(Path(folder).resolve() for folder in os.environ.get("PATH", "").split(os.pathsep) if folder)
    found = [path for folder in folders for name in ("python3", "python3.1[1-4]") for path in folder.glob(name)]
    first, others = _measure(Path(sys.executable)), list(filter(None, map(_measure, found)))
    if first is None or not others or min(others)[0] * 4 / 3 > first[0]:
        return sys.executable
    seconds, chosen = min(others)
    say(f"{chosen} is used: {first[1]} takes {first[0] / seconds:.1f} times the CPU. PYTHON=… names another.")
    return chosen


def _measure(python: Path) -> tuple[float, str] | None:
    try:
        done = subprocess.run([python, "-c", PROBE], capture_output=True, text=True, timeout=20, check=True)
        seconds, path = done.stdout.strip().split(maxsplit=1)
        return float(seconds), path
    except (OSError, subprocess.SubprocessError, ValueError):  # nothing that could be used
        return None


def sync(uv: Path, venv: Path, requirements: str, environment: Mapping[str, str]) -> None:
    python = venv / "bin" / "python"
    if not _works(python):
        run([uv, "venv", "--quiet", "--clear", "--python", choose_python(), venv], environment)
    file = REQUIREMENTS / f"{requirements}.txt"
    # A fresh machine downloads some hundred megabytes here, so uv's own progress stays visible.
    run([uv, "pip", "sync", "--python", python, "--require-hashes", "--compile-bytecode", file], environment)


def install(profile: str) -> None:
    """Install one profile. `test` holds all of `run`, so a checkout that has it keeps it."""
    if profile == "run" and stamp("test").exists():
        profile = "test"
    if installed(profile):
        _finish(profile)
        return
    environment = index_environment(os.environ)
    uv = find_uv(environment)
    for name in ("run", "test"):
        stamp(name).unlink(missing_ok=True)
    say(f"Installing Annabelle into {VENV.name} …")
    sync(uv, VENV, profile, environment)
    python, constraints = VENV / "bin" / "python", REQUIREMENTS / "build.txt"
    run(
        [
            uv,
            "pip",
            "install",
            "--quiet",
            "--python",
            python,
            "--no-deps",
            "--build-constraints",
            constraints,
            "-e",
            ".",
        ],
        environment,
    )
    if profile == "test":
        sync(uv, EXTERNAL, "external", environment)
    # Imports cost two to three times as much without it.
    run([python, "-m", "compileall", "-q", "src"], environment)
    _finish(profile)


def install_bench() -> None:
    """What `make bench` compares with; nobody else needs it, so nothing else installs it."""
    stamped = BENCH / ".installed"
    wanted = hashlib.sha256((REQUIREMENTS / "bench.txt").read_bytes() + sys.version.encode()).hexdigest()
    if stamped.exists() and stamped.read_text() == wanted:
        return
    stamped.unlink(missing_ok=True)
    environment = index_environment(os.environ)
    say(f"Installing what the benchmark compares with into {BENCH.name} …")
    sync(find_uv(environment), BENCH, "bench", environment)
    stamped.write_text(wanted)


def _finish(profile: str) -> None:
    if profile == "test":
        stamp("run").write_text("test\n")
    stamp(profile).write_text(digest(profile))


def ensure_programs() -> None:
    """Install the system programs of the tests where we may; name those that stay missing and are needed."""
    table = (REQUIREMENTS / "programs.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split()[:2] for line in table if line.strip() and not line.startswith("#")]
    missing = _missing((program, package) for program, package in rows if not program.endswith("?"))
    if not missing:
        return
    _apt_install(list(missing.values()))
    # One by one: a distribution that does not know one of these has the others.
    for package in _missing((program[:-1], package) for program, package in rows if program.endswith("?")).values():
        _apt_install([package])
    still = _missing(missing.items())
    if still:
        names, packages = ", ".join(still), " ".join(still.values())
        raise Failure(
            f"The tests need {names}, which this machine does not have and this user may not install.\n"
            f"Install it and try again (Debian: apt-get install {packages})."
        )


def _missing(programs: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {program: package for program, package in programs if shutil.which(program) is None}


def _apt_install(packages: list[str]) -> None:
    apt, sudo = shutil.which("apt-get"), shutil.which("sudo")
    if apt is None or (os.geteuid() != 0 and sudo is None):
        return
    say(f"Installing {', '.join(packages)} …")
    prefix = [] if os.geteuid() == 0 else [str(sudo), "-n"]
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = [*prefix, apt, "install", "-y", "-qq", "--no-install-recommends", *packages]
    if subprocess.run(command, env=environment, stdin=subprocess.DEVNULL).returncode != 0:
        # A fresh container has no package lists yet.
        subprocess.run([*prefix, apt, "update", "-qq"], env=environment, stdin=subprocess.DEVNULL)
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL)


@contextlib.contextmanager
def alone() -> Generator[None]:
    """Two installs at once wait for each other."""
    with (ROOT / ".install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(what: str) -> int:
    try:
        with alone():
            if what in ("test", "programs"):
                ensure_programs()
            if what in ("run", "test"):
                install(what)
            if what == "bench":
                install_bench()
    except Failure as failure:
        say(str(failure))
        return 2
    except subprocess.CalledProcessError as error:
        say(f"{Path(str(error.cmd[0])).name} failed with exit code {error.returncode}; its own words are above.")
        say("Most often the network is the reason: fix that and run the same command again, it goes on from here.")
        return 1
    except OSError as error:
        say(f"The checkout could not be written: {error}. Free space or fix its permissions, and try again.")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "run"))
