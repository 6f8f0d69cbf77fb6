"""`annabelle service`: runs Annabelle under the machine's service manager (UX-04)."""

from __future__ import annotations

import math
import os
import shlex
import sys
import time
from pathlib import Path

import typer

from annabelle.cli.down import bring_down
from annabelle.cli.hub_client import HubFile
from annabelle.cli.hub_process import EXTRA_SECONDS, POLL_SECONDS, START_SECONDS, running_hub
from annabelle.cli.options import Json, command_app, run_by_default
from annabelle.cli.output import print_json, print_line
from annabelle.cli.service_manager import Argv, ServiceManager, ServicePlan, owner_of, run_command, service_manager
from annabelle.core.errors import CallerMistake, HubUnreachable, StorageTrouble, Unavailable
from annabelle.core.home import Home, write_atomically
from annabelle.core.settings import Settings, load_settings

_COMING = ("active", "activating", "loaded")

app = command_app("Run Annabelle as a service of this machine.")


@app.command()
def show(json: Json = False) -> None:
    """Print what `install` would write, and where, without writing it."""
    manager = service_manager()
    text = manager.render(_build_plan(Home.from_environment()))
    if json:
        print_json({"manager": manager.name, "path": str(manager.file), "unit": text})
    else:
        sys.stderr.write(f"For {manager.file}:\n")
        sys.stdout.write(text)


@app.command()
def install(json: Json = False) -> None:
    """Install the service and start it. Run it again after moving Annabelle or its home."""
    home, manager = Home.from_environment().prepare(), service_manager()
    text = manager.render(_build_plan(home))
    _refuse_other_home(manager, home)
    _write_unit(manager.file, text)
    note, left = None, [*manager.enable(), *manager.start()]
    if manager.is_available():
        note, left = _start_service(manager, home), []
    unknown = _only_in_this_terminal()
    if json:
        where = {"manager": manager.name, "path": str(manager.file)}
        print_json({**where, "started": note is not None, "next": left, "settings_not_known_to_it": unknown})
        return
    print_line(f"The service is installed in {manager.file}.")
    if note is not None:
        print_line(f"Annabelle runs at {note.url} (process {note.pid}), and starts again with the machine.")
    _print_next_steps(manager, left, "start it")
    for line in filter(None, [manager.advice(), _describe_unknown(unknown)]):
        print_line(line)


@app.command()
def remove(json: Json = False) -> None:
    """Stop the service and remove it. What Annabelle knows stays in the home."""
    manager = service_manager()
    there = manager.file.exists()
    left: list[Argv] = []
    if there:
        works = manager.is_available()
        left = [] if works else [*manager.disable(), *manager.forget()]
        for argv in manager.disable() if works else []:
            run_command(argv)
        _delete_unit(manager.file)
        for argv in manager.forget() if works else []:
            run_command(argv)
    if json:
        print_json({"manager": manager.name, "path": str(manager.file), "removed": there, "next": left})
        return
    print_line(f"The service is removed from {manager.file}." if there else "No service is installed.")
    _print_next_steps(manager, left, "let it forget the service")


@run_by_default(app)
@app.command()
def status(json: Json = False) -> None:
    """Show whether the service is installed and runs. Exit code 5 when it does not."""
    manager = service_manager()
    there = manager.file.exists()
    state = (manager.state() if manager.is_available() else "unknown") if there else "not installed"
    serves = manager.home_in(manager.file.read_text(encoding="utf-8")) if there else None
    if json:
        where = {"manager": manager.name, "path": str(manager.file)}
        print_json({**where, "installed": there, "state": state, "home": serves})
    elif not there:
        print_line("No service is installed. To install it: annabelle service install")
    else:
        known = f"It is {state}." if state != "unknown" else f"{manager.name} can not be asked from here how it is."
        print_line(f"The service is installed in {manager.file}, for the home {serves}. {known}")
    if state != "active":
        raise typer.Exit(HubUnreachable.exit_code)


def _build_plan(home: Home) -> ServicePlan:
    grace = load_settings(home).annabelle_shutdown_grace_seconds
    return ServicePlan(
        python=sys.executable,
        home=home.root,
        search_path=os.environ.get("PATH") or os.defpath,
        stop_seconds=math.ceil(grace + EXTRA_SECONDS),
        # Root may install the service for another user's home, and it must not run as root then.
        user=owner_of(home.root) if home.root.exists() else None,
    )


def _refuse_other_home(manager: ServiceManager, home: Home) -> None:
    if not manager.file.exists():
        return
    serves = manager.home_in(manager.file.read_text(encoding="utf-8"))
    if serves is not None and serves != str(home.root):
        raise CallerMistake(
            f"The service that is installed serves another home: {serves}.",
            hint="Remove it first: annabelle service remove",
        )


def _start_service(manager: ServiceManager, home: Home) -> HubFile:
    """Start the service and wait until its hub is ready."""
    # Two hubs cannot share a home. Stopping the running one loses nothing, so the service takes over.
    bring_down(home)
    for argv in [*manager.enable(), *manager.start()]:
        run_command(argv)
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if (note := running_hub(home)) is not None:
            return note
        if (state := manager.state()) not in _COMING:
            raise Unavailable(f"The service did not start: it is {state}.", hint=f"Its log: {home.logs / 'hub.log'}")
        time.sleep(POLL_SECONDS)
    raise Unavailable(
        f"The service was not ready after {START_SECONDS:.0f} seconds.", hint="Look into its log: annabelle logs"
    )


def _write_unit(path: Path, text: str) -> None:
    try:
        write_atomically(path, text, mode=0o644)
    except OSError as error:
        raise StorageTrouble(f"{path} could not be written: {error.strerror}.") from error


def _delete_unit(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageTrouble(f"{path} could not be removed: {error.strerror}.") from error


def _only_in_this_terminal() -> list[str]:
    """Environment settings that the service will not have, because no file holds them."""
    return sorted(
        {name.upper() for name, value in os.environ.items() if value and name.lower() in Settings.model_fields}
    )


def _describe_unknown(unknown: list[str]) -> str | None:
    if not unknown:
        return None
    return (
        f"Set in this terminal only, so the service does not know: {', '.join(unknown)}.\n"
        f"To keep one for it: annabelle config set {unknown[0]}"
    )


def _print_next_steps(manager: ServiceManager, left: list[Argv], what: str) -> None:
    if left:
        print_line(f"{manager.name} can not be reached from here. To {what}, where it can be:")
        for argv in left:
            print_line(f"  {shlex.join(argv)}")
