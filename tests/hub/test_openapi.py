"""The OpenAPI document is true: a fuzzer driven by it finds no 5xx and no undocumented answer."""

from __future__ import annotations

import importlib
import json
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from annabelle.hub import api
from annabelle.hub.app import RESOURCES
from hub.hubs import HubProcess
from support.timing import seconds


@pytest.mark.req("API-03")
def test_the_document_names_every_operation_its_errors_and_its_security(shared_hub: HubProcess) -> None:
    document = shared_hub.http.get("/openapi.json").json()
    operations = {
        operation["operationId"]: operation for path in document["paths"].values() for operation in path.values()
    }
    assert {"health", "status", "send_message", "get_message", "list_tools", "call_tool", "list_agents"} <= set(
        operations
    )
    assert document["security"] == [{"token": []}, {"bearer": []}]
    for name, operation in operations.items():
        assert {"401", "403", "413", "422", "429"} <= set(operation["responses"]), name
        for status, answer in operation["responses"].items():
            if int(status) >= 400:
                assert answer["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/ErrorAnswer"}
    assert "requestBody" in operations["send_message"]
    for name in ("restart", "restore_backup"):  # they answer without a body
        assert "content" not in operations[name]["responses"]["202"], name
    assert not any(path.startswith("/internal") for path in document["paths"])


def test_every_path_of_a_resource_leads_to_its_import() -> None:
    modules = {module.name for module in pkgutil.iter_modules(api.__path__)}
    routers = {name: getattr(importlib.import_module(f"{api.__name__}.{name}"), "router", None) for name in modules}
    paths = {name: {route.path.split("/")[1] for route in router.routes} for name, router in routers.items() if router}
    assert {name: set(segments) for name, segments in RESOURCES.items()} == paths


# What a tool's arguments must be depends on the tool, one thing to forget is named in one of two ways, a rule is a
# sentence that must be understood, as is when a skill runs, a goal has tools that exist, a setting has its own bounds
# and a model its name, so what fits the document may still be refused with 422. What is said to an agent as to a model
# is refused as OpenAI does. A path refuses whatever method it does not have the same way, so one of them does.
CONFIG = """
[phases.coverage]
unexpected-methods = ["DELETE"]

[[operations]]
include-path = "/tools/call"
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429"]

[[operations]]
include-path = "/v1/chat/completions"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "429", "503"]

[[operations]]
include-path = "/rules"
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429"]

[[operations]]
include-path-regex = "^/goals$|^/(goals|skills)/[^/]+/update$"
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429"]

[[operations]]
include-path-regex = "^/settings$|^/models/"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "422", "429"]

[[operations]]
include-path = "/memory/forget"
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429"]
"""


@pytest.mark.req("API-03")
@pytest.mark.timeout(300)
def test_a_schema_driven_fuzzer_finds_nothing(make_hub: Callable[..., HubProcess], tmp_path: Path) -> None:
    # Turns are not what is fuzzed: a paused agent answers every message at once.
    hub = make_hub().start()
    hub.http.post("/agents/annabelle/pause", json={"reason": "fuzzing"})
    goal = {"title": "Learn the piano", "learnings": ["I have a keyboard."], "tools": []}  # for what needs one
    assert hub.http.post("/goals", json=goal).status_code == 201
    document = hub.http.get("/openapi.json").json()
    for stream in ("/events", "/threads/{thread_id}/events"):
        del document["paths"][stream]  # endless by nature; the other tests read them
    del document["paths"]["/agents/{agent_id}/resume"]  # it would start real turns
    for restart in ("/restart", "/backups/{name}/restore"):
        del document["paths"][restart]  # no hub would answer for a while
    del document["paths"]["/accounts/google/wait"]  # it waits for a person
    del document["paths"]["/accounts/mail"]  # it would look for mail servers elsewhere
    del document["security"]  # every request has the token; `test_api` tries without
    assert "$defs" not in json.dumps(document)  # whatever a body is made of can be found
    schema = tmp_path / "openapi.json"
    schema.write_text(json.dumps(document))
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    run = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(config), "run", str(schema),
            "--url", hub.url, "--header", f"X-Annabelle-Token: {hub.token}",
            "--max-examples", "2", "--seed", "1", "--workers", "1", "--request-timeout", "20",
            "--phases", "examples,coverage,fuzzing", "--suppress-health-check", "all",
            "--warnings", "off", "--no-color",
        ],
        capture_output=True, text=True, cwd=tmp_path, timeout=seconds(280),
    )  # fmt: skip
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]
    assert hub.http.get("/health").json()["phase"] == "ready"
