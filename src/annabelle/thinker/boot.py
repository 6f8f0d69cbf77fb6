"""How a thinker process begins: warm and nameless, until the hub hands it an agent (ARCHITECTURE, Warm spare).

Importing this module imports everything. Where it can the hub does so once, in a nursery, and forks every thinker from
there. Then the process waits for one line on standard input, the `ThinkerBoot`. Until that line it holds no agent, no
secret and no open database; without it, it ends quietly.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import sys
from collections.abc import Mapping
from typing import NoReturn

import uvloop
from pydantic import ValidationError
from pydantic_ai.messages import ModelMessagesTypeAdapter

from annabelle.core.contract import ThinkerBoot
from annabelle.core.errors import AnnabelleError, ConfigMistake
from annabelle.thinker.lifeline import die_with_parent
from annabelle.thinker.serve import serve

# What a process needs from where it was started, beside what the hub gives it.
_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "ANNABELLE_HOME", "ANNABELLE_FAILPOINTS")
_LONGEST_LINE = 4_000_000

# Built on first use, so used now: no message has to wait for it.
ModelMessagesTypeAdapter.dump_python([], mode="json")
ModelMessagesTypeAdapter.validate_python([])


def main() -> None:
    """Be a warm spare, then a thinker."""
    die_with_parent(os.getppid())
    gc.collect()
    gc.freeze()  # the collector need not walk over what will stay
    line = _read_line(sys.stdin.fileno())
    if not line.strip():
        return
    try:
        boot = _parse(line)
        take_environment(boot.environment)
        uvloop.run(serve(boot))
    except AnnabelleError as error:
        _refuse(error)
    except Exception as error:
        logging.getLogger(__name__).exception("the thinker can not go on")
        _refuse(AnnabelleError(f"The thinker failed unexpectedly: {type(error).__name__}: {error}."))


def _read_line(descriptor: int) -> bytes:
    """One line, unbuffered: what follows it belongs to whoever watches the descriptor later."""
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < _LONGEST_LINE:
        chunk = os.read(descriptor, 65536)
        if not chunk:
            break
        line += chunk
    return bytes(line)


def _parse(line: bytes) -> ThinkerBoot:
    try:
        return ThinkerBoot.model_validate_json(line)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "boot"
        raise ConfigMistake(f"{place} is not valid: {first['msg']}.", field=place) from error


def take_environment(given: Mapping[str, str]) -> None:
    """From here on the process has exactly what the hub gave it, and the few things every process needs."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    os.environ.clear()
    os.environ.update({**kept, **given})


def _refuse(error: AnnabelleError) -> NoReturn:
    """One line for the hub, and the exit code that belongs to the mistake (THK-04)."""
    sys.stdout.write(json.dumps({"error": error.body().model_dump(exclude_none=True)}) + "\n")
    sys.stdout.flush()
    raise SystemExit(error.exit_code)
