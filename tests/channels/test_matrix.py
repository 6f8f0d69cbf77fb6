"""A person talks to Annabelle in Matrix: rooms, invitations, encryption, files."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from channels.correspondents import MatrixPeople, matrix_people
from channels.matrix_double import OWN_ID, MatrixDouble
from hub.hubs import HubProcess, fresh_home, wait_for
from support.few_servers import only
from support.scripted_model import ScriptedServer, plan_text

ADA = "@ada:example.org"
EVE = "@eve:example.org"
GROUP = "!group:example.org"


@pytest.fixture(scope="module")
def people() -> Iterator[MatrixPeople]:
    with matrix_people() as made:
        yield made


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer, people: MatrixPeople) -> Iterator[HubProcess]:
    home = fresh_home(tmp_path_factory.mktemp("matrix"))
    made = HubProcess(home, model.openai_url, CHANNEL_POLL_INTERVAL_MS="200", **only(), **people.settings).start()
    answer = made.http.post("/channels/matrix/accounts", json={"accountId": ADA})
    assert answer.status_code == 200, answer.text
    yield made
    made.end()


@pytest.fixture
def matrix(hub: HubProcess, people: MatrixPeople) -> MatrixDouble:
    return people.homeserver


def wait_for_text(matrix: MatrixDouble, room_id: str, part: str) -> dict[str, object]:
    def look() -> dict[str, object] | None:
        return next((one for one in matrix.told(room_id) if part in str(one["body"])), None)

    return wait_for(look, f"“{part}” in {room_id}")


def open_room(matrix: MatrixDouble, room_id: str, *others: str) -> None:
    matrix.invite(ADA, room_id)
    wait_for(lambda: OWN_ID in matrix.rooms[room_id].members, f"Annabelle is in {room_id}")
    matrix.rooms[room_id].members.update(others)


@pytest.mark.req("CHN-02")
def test_annabelle_enters_only_rooms_of_people_she_knows(matrix: MatrixDouble) -> None:
    matrix.invite(EVE, "!trap:example.org")
    open_room(matrix, "!home:example.org")
    wait_for(lambda: "!trap:example.org" in matrix.left, "the other room is left")
    assert OWN_ID not in matrix.rooms["!trap:example.org"].members
    assert matrix.told("!trap:example.org") == []


@pytest.mark.req("CHN-02")
def test_in_a_room_with_others_only_what_names_annabelle_is_answered(matrix: MatrixDouble) -> None:
    open_room(matrix, GROUP, EVE)
    matrix.say(GROUP, ADA, plan_text([], say="Not asked."))
    matrix.say(GROUP, EVE, f"Annabelle: {plan_text([], say='A stranger.')}")
    matrix.say(GROUP, ADA, plan_text([], say="Asked."), **{"m.mentions": {"user_ids": [OWN_ID]}})
    wait_for_text(matrix, GROUP, "Asked.")
    assert [one["body"] for one in matrix.told(GROUP)] == ["Asked."]


@pytest.mark.req("CHN-01")
def test_an_encrypted_room_is_told_once_that_it_cannot_be_read(matrix: MatrixDouble) -> None:
    room = "!secret:example.org"
    matrix.invite(ADA, room, encrypted=True)
    wait_for_text(matrix, room, "encrypted")
    matrix.put(room, ADA, "m.room.encrypted", {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "…"})
    matrix.say(room, ADA, plan_text([], say="Plainly."))
    wait_for_text(matrix, room, "Plainly.")
    assert sum("encrypted" in str(one["body"]) for one in matrix.told(room)) == 1


@pytest.mark.req("CHN-04")
def test_more_messages_than_one_sync_shows_are_all_read(hub: HubProcess, matrix: MatrixDouble) -> None:
    room = "!busy:example.org"
    open_room(matrix, room, EVE)
    mention = {"m.mentions": {"user_ids": [OWN_ID]}}
    matrix.say(room, ADA, plan_text([], say="I am here."), **mention)
    wait_for_text(matrix, room, "I am here.")
    with matrix.hold():  # all at once, as after an outage
        matrix.say(room, ADA, plan_text([], say="The first."), **mention)
        for number in range(120):
            matrix.say(room, EVE, f"chatter {number}")
    wait_for_text(matrix, room, "The first.")


@pytest.mark.req("CHN-05")
@pytest.mark.incident("I-12")
def test_an_answer_is_html_with_visible_links_and_no_preview(matrix: MatrixDouble) -> None:
    room = "!links:example.org"
    open_room(matrix, room)
    matrix.say(room, ADA, plan_text([], say="It is **here**: [a page](https://example.org/x)\n\nNext < line."))
    told = wait_for_text(matrix, room, "here")
    assert told["body"] == "It is here: a page (https://example.org/x)\n\nNext < line."
    html = "It is <b>here</b>: a page (https://example.org/x)<br>\n<br>\nNext &lt; line."
    assert told["formatted_body"] == html
    assert told["com.beeper.linkpreviews"] == []


@pytest.mark.req("CHN-05")
def test_what_is_too_large_with_its_marks_is_sent_as_plain_text(people: MatrixPeople, matrix: MatrixDouble) -> None:
    room = "!large:example.org"
    open_room(matrix, room)
    before = matrix.refuse

    def refuse(method: str, path: str, body: dict[str, object]) -> tuple[int, dict[str, object]] | None:
        return (413, {"errcode": "M_TOO_LARGE", "error": "Too large"}) if "formatted_body" in body else None

    matrix.refuse = refuse
    try:
        matrix.say(room, ADA, plan_text([], say="It is **bold**."))
        told = wait_for_text(matrix, room, "bold")
    finally:
        matrix.refuse = before
    assert told == {"msgtype": "m.text", "body": "It is bold."}


@pytest.mark.req("CHN-01")
def test_a_file_that_a_person_sends_lies_in_the_workspace(hub: HubProcess, matrix: MatrixDouble) -> None:
    room = "!files:example.org"
    open_room(matrix, room)
    matrix.media["list"] = b"milk, eggs"
    file = {"msgtype": "m.file", "filename": "../list.txt", "url": "mxc://example.org/list", "info": {"size": 10}}
    matrix.say(room, ADA, plan_text([], say="Got it."), **file)
    wait_for_text(matrix, room, "Got it.")
    (kept,) = (hub.home.workspace / "received").iterdir()
    assert kept.read_bytes() == b"milk, eggs"


@pytest.mark.req("POL-03", "CHN-01")
def test_a_question_says_what_to_write_where_there_are_no_buttons(matrix: MatrixDouble) -> None:
    room = "!ask:example.org"
    open_room(matrix, room)
    skill = {"name": "Look", "instructions": "Look around.", "trigger_type": "manual"}
    matrix.say(room, ADA, plan_text([("memory_store_skill", skill)], say="It is set up."))
    told = wait_for_text(matrix, room, "May I call")
    assert "/approve apr_" in str(told["body"])
    assert "/deny apr_" in str(told["body"])


@pytest.mark.req("CHN-03")
def test_garbage_and_edits_are_skipped(matrix: MatrixDouble) -> None:
    room = "!garbage:example.org"
    open_room(matrix, room)
    for content in ({}, {"msgtype": 5, "body": []}, {"msgtype": "m.file"}, {"body": "no type"}):
        matrix.put(room, ADA, "m.room.message", content)
    matrix.repeat(room, {"type": "m.room.message", "content": {"msgtype": "m.text", "body": "nobody"}})
    edit = {"rel_type": "m.replace", "event_id": "$event1"}
    matrix.say(room, ADA, plan_text([], say="An edit."), **{"m.relates_to": edit})
    matrix.say(room, ADA, plan_text([], say="Still here."))
    wait_for_text(matrix, room, "Still here.")
    assert not any("An edit." in str(one["body"]) for one in matrix.told(room))


@pytest.mark.req("CHN-01")
def test_a_room_in_which_annabelle_may_not_write_does_not_hold_up_the_others(
    matrix: MatrixDouble, monkeypatch: pytest.MonkeyPatch
) -> None:
    silent, other = "!silent:example.org", "!other:example.org"
    open_room(matrix, silent)
    open_room(matrix, other)
    forbidden = (403, {"errcode": "M_FORBIDDEN", "error": "You may not write here"})
    monkeypatch.setattr(matrix, "refuse", lambda _method, path, _body: forbidden if silent in path else None)
    matrix.put(silent, ADA, "m.room.encrypted", {"algorithm": "m.megolm.v1.aes-sha2", "ciphertext": "…"})
    matrix.say(other, ADA, plan_text([], say="Heard."))
    wait_for_text(matrix, other, "Heard.")
