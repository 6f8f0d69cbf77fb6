"""Servers that hang, print garbage, die in a loop or answer with far too much, in a house that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from e2e.days import MakeHub, bad_server, plan, ready, reply, write_external
from hub.hubs import HubProcess, wait_for
from support.standing_yes import let_pass
from support.timing import seconds

DEAF_LIMIT_SECONDS = 2


@pytest.fixture
def hub(make_hub: MakeHub, tmp_path: Path) -> HubProcess:
    """A hub that awkward, deaf and dying servers are added to while it runs."""
    quick = {"SERVER_RESTART_BASE_SECONDS": "0.01", "SERVER_MAX_RESTARTS": "2"}
    started = make_hub(SERVER_PING_SECONDS="0.2", SERVER_PING_TIMEOUT_SECONDS=f"{seconds(1):g}", **quick)
    let_pass(started.home.root, None, awkward_huge=("count",))
    started.start()
    awkward, dying = bad_server("awkward"), bad_server("crashing", WITNESS_FILE=str(tmp_path / "witness"))
    deaf = {**awkward, "timeout": DEAF_LIMIT_SECONDS * 1000}
    write_external(started, {"awkward": awkward, "deaf": deaf, "dying": dying})
    ready(started, "awkward")
    ready(started, "deaf")
    return started


@pytest.mark.req("HUB-04", "RTR-04", "EXT-05")
@pytest.mark.incident("I-18")
def test_no_bad_server_takes_the_house_along(hub: HubProcess) -> None:
    def call(name: str, **arguments: object) -> tuple[int, dict[str, object]]:
        answer = hub.http.post("/tools/call", json={"name": name, "arguments": arguments})
        return answer.status_code, answer.json()

    assert call("awkward_garbage", count=1000)[1]["text"] == "still here"
    status, large = call("awkward_huge", count=50_000_000)
    assert status == 200
    assert large["is_error"] is True
    assert "too large" in str(large["text"])
    assert len(str(large)) < 2000
    answer = hub.say(plan("{result}", ("awkward_huge", {"count": 50_000_000})), chatId="large")
    assert "too large" in reply(answer)
    status, frozen = call("deaf_freeze")
    assert (status, frozen["error"]["code"]) == (504, "tool_timeout")  # type: ignore[index]
    assert f"{DEAF_LIMIT_SECONDS} seconds" in frozen["error"]["message"]  # type: ignore[index]

    servers = lambda: {one["name"]: one for one in hub.http.get("/status").json()["servers"]}  # noqa: E731
    wait_for(lambda: servers()["dying"]["state"] == "down", "the dying server to be given up")
    assert "the moon is in the wrong place" in servers()["dying"]["lastError"]
    topics = [notice["topic"] for notice in hub.http.get("/status").json()["notices"]]
    assert any("dying" in topic for topic in topics), topics
    wait_for(lambda: servers()["deaf"]["restarts"] > 0, "the deaf server to be restarted")
    ready(hub, "deaf")
    assert call("deaf_garbage", count=1)[1]["text"] == "still here"
    names = {tool["name"] for tool in hub.http.get("/tools/list").json()["tools"]}
    assert "filer_read_file" in names
    assert not any(name.startswith("dying_") for name in names)


@pytest.mark.req("RTR-03", "RTR-04", "LOOP-07")
def test_an_invented_tool_and_wrong_arguments_go_back_to_the_model(house: HubProcess) -> None:
    unknown = house.say(plan("{result}", ("filer_raed_file", {"path": "x"})), chatId="invented")
    assert unknown["state"] == "done"
    assert "Did you mean read file" in reply(unknown), "the model was told its name, and a person reads what it does"
    wrong = house.say(plan("{result}", ("filer_read_file", {"path": 7})), chatId="wrong")
    assert wrong["state"] == "done"
    assert "path" in reply(wrong)
