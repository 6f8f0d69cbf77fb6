"""Runs the scripted model as a process of its own."""

from __future__ import annotations

import argparse
import json
import socket
from pathlib import Path

import uvicorn
from pydantic import TypeAdapter

from support.scripted_model.app import ScriptedModel
from support.scripted_model.script import Rule, Script


def main() -> None:
    parser = argparse.ArgumentParser(prog="support.scripted_model", description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, help="JSON list of rules")
    parser.add_argument("--record", type=Path, help="JSONL file every request is appended to")
    parser.add_argument("--forget", action="store_true", help="keep no requests in memory (long runs, benches)")
    parser.add_argument("--key", help="refuse requests without this API key")
    parser.add_argument("--model", action="append", help="a model to list; may be repeated")
    options = parser.parse_args()
    rules = TypeAdapter(list[Rule]).validate_python(json.loads(options.script.read_text()) if options.script else [])
    model = ScriptedModel(
        Script(rules),
        models=options.model or ["scripted"],
        key=options.key,
        record=options.record,
        keep=not options.forget,
    )
    listener = socket.create_server(("127.0.0.1", options.port))
    print(f"LISTENING_PORT={listener.getsockname()[1]}", flush=True)  # noqa: T201  the port is what the starter reads
    config = uvicorn.Config(model, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
