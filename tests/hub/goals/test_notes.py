"""Notes belong to one person, may belong to a goal, are found by words, and are offered to the goal they fit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx2 as httpx
import pytest
from sqlalchemy import Connection, insert

from annabelle.core.errors import Conflict, InvalidArguments
from annabelle.core.home import Home
from annabelle.core.messages import OWNER, now
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.embeddings import EmbeddingsUnavailable
from annabelle.hub.app import make_app
from annabelle.hub.base_setup import HubStart
from annabelle.hub.boot import assemble
from annabelle.hub.context import HubContext
from annabelle.hub.goals import goal_matcher
from annabelle.hub.goals.note_service import NoteService
from annabelle.hub.instance import bind_port
from annabelle.hub.security.users_file import add_user
from annabelle.store.goals import NewGoal, StoredGoal, StoredNote, add_goal, list_notes
from annabelle.store.tables import goal_notes

PIANO = "Learn to play the piano"


@pytest.fixture
async def hub(home: Home) -> AsyncIterator[HubContext]:
    """A hub in this process, without servers and without a model."""
    settings = Settings.model_validate({"annabelle_port": 0, "nursery_enabled": False, "thinker_warm_spare": False})
    with bind_port(0) as sock:
        async with AsyncExitStack() as stack:
            machine = await assemble(HubStart(home, settings, Redactor(), sock, None), stack)
            await machine.hub.agents.start()
            machine.hub.base.lifecycle.mark_ready()
            yield machine.hub


@pytest.fixture
def notes(hub: HubContext) -> NoteService:
    return hub.services.goals.notes


async def client(hub: HubContext, token: str) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(make_app(hub))
    headers = {"X-Annabelle-Token": token}
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as made:
        yield made


@pytest.fixture
async def owner(hub: HubContext, home: Home) -> AsyncIterator[httpx.AsyncClient]:
    async for made in client(hub, home.token_file.read_text().strip()):
        yield made


@pytest.fixture
async def ada(hub: HubContext, home: Home) -> AsyncIterator[httpx.AsyncClient]:
    token = add_user(home.users_file, "ada")
    hub.security.users.reload_if_changed()
    async for made in client(hub, token):
        yield made


async def have_goal(hub: HubContext, title: str = PIANO, description: str = "", user: str = OWNER) -> StoredGoal:
    new = NewGoal(user_id=user, agent_id="annabelle", title=title, description=description)
    return await hub.storage.database.write(lambda conn: add_goal(conn, new))


@pytest.mark.req("MEM-11", "THR-03")
async def test_a_note_is_written_read_changed_moved_and_deleted(hub: HubContext, owner: httpx.AsyncClient) -> None:
    goal = await have_goal(hub)
    written = (await owner.post("/notes", json={"title": "Teacher", "content": "Mrs. Novak", "goal": PIANO})).json()
    path = f"/notes/{written['noteId']}"
    assert (written["goalId"], written["writtenBy"], written["trust"], written["readFrom"]) == (
        goal.id, "user", "trusted", None
    )  # fmt: skip
    changed = (await owner.post(f"{path}/update", json={"content": "Mrs. Novak, Tuesdays"})).json()
    assert (changed["title"], changed["content"]) == ("Teacher", "Mrs. Novak, Tuesdays")
    assert [one["noteId"] for one in (await owner.get("/notes", params={"goal": goal.id})).json()["notes"]] == [
        written["noteId"]
    ]
    assert (await owner.post(f"{path}/move", json={"goal": None})).json()["goalId"] is None
    assert (await owner.get("/notes", params={"goal": goal.id})).json()["notes"] == []
    assert (await owner.post(f"{path}/delete")).json()["title"] == "Teacher"
    assert (await owner.get(path)).status_code == 404


@pytest.mark.req("THR-03")
@pytest.mark.incident("I-30")
async def test_nobody_reaches_the_notes_or_goals_of_somebody_else(
    hub: HubContext, owner: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    goal = await have_goal(hub)
    note = (await owner.post("/notes", json={"title": "Mine", "content": "secret garden", "goal": goal.id})).json()
    path = f"/notes/{note['noteId']}"
    hers = (await ada.post("/notes", json={"title": "Hers"})).json()
    tried = [
        await ada.get(path),
        await ada.post(f"{path}/update", json={"title": "Taken"}),
        await ada.post(f"{path}/move", json={"goal": None}),
        await ada.post(f"{path}/delete"),
        await ada.get("/notes", params={"goal": goal.id}),
        await ada.get("/notes", params={"goal": PIANO}),
        await ada.post("/notes", json={"title": "x", "goal": goal.id}),
        await ada.post("/links", json={"url": "https://example.org/", "goal": goal.id}),
        await ada.post(f"/notes/{hers['noteId']}/move", json={"goal": goal.id}),
    ]
    assert [one.status_code for one in tried] == [404] * len(tried)
    assert [one["title"] for one in (await ada.get("/notes")).json()["notes"]] == ["Hers"]
    assert (await ada.get("/notes", params={"q": "garden"})).json()["notes"] == []
    kept = (await owner.get(path)).json()
    assert (kept["title"], kept["goalId"]) == ("Mine", goal.id)


async def test_a_note_for_a_goal_that_is_not_there_is_refused_and_nothing_is_kept(owner: httpx.AsyncClient) -> None:
    refused = await owner.post("/notes", json={"title": "x", "goal": "Fly to the moon"})
    assert refused.status_code == 404
    assert "goals list" in refused.json()["error"]["hint"]
    assert (await owner.get("/notes")).json()["notes"] == []


async def test_a_title_of_two_goals_names_neither(hub: HubContext, notes: NoteService) -> None:
    first = await have_goal(hub)
    await have_goal(hub)
    with pytest.raises(Conflict, match="Several goals"):
        await notes.add(OWNER, "Teacher", goal=PIANO.upper())
    assert (await notes.add(OWNER, "Teacher", goal=first.id)).goal_id == first.id


async def test_who_listens_is_told_of_a_persons_note_for_a_goal_in_its_transaction(
    hub: HubContext, notes: NoteService
) -> None:
    goal, told = await have_goal(hub), list[tuple[str, bool]]()

    def listen(conn: Connection, note: StoredNote) -> None:
        told.append((note.title, any(one.id == note.id for one in list_notes(conn, OWNER))))

    notes.on_note(listen)
    loose = await notes.add(OWNER, "loose")
    await notes.add(OWNER, "new", goal=goal.id)
    await notes.move(loose.id, goal.id, OWNER)
    await notes.move(loose.id, goal.id, OWNER)
    await notes.change(loose.id, OWNER, content="more")
    assert told == [("new", True), ("loose", True)]


@pytest.mark.parametrize(
    ("title", "content", "fits"),
    [
        ("Five exercises for beginner pianists", "Train finger independence on the keyboard with scales.", PIANO),
        ("Teacher", "My piano teacher is Mrs. Novak, Tuesdays at six.", PIANO),
        ("Shoes", "Review of the best marathon shoes for long distance running", "Run a half marathon"),
        ("Fingerübungen", "Tonleitern am Klavier für Anfänger", "Klavier spielen lernen"),
        ("Wi-Fi password of the printer", "", None),
        ("Birthday", "Mum likes flowers", None),
    ],
)
async def test_a_note_without_a_goal_is_offered_to_the_one_it_fits(
    hub: HubContext, owner: httpx.AsyncClient, title: str, content: str, fits: str | None
) -> None:
    await have_goal(hub, PIANO, "Simple songs by summer, twenty minutes of practice each weekday")
    for other in ("Run a half marathon", "Buy a house in the country", "Klavier spielen lernen"):
        await have_goal(hub, other)
    await have_goal(hub, "Repair the printer and its Wi-Fi password", user="ada")
    note = (await owner.post("/notes", json={"title": title, "content": content})).json()
    offered = note["suggestedGoal"]
    assert (None if offered is None else offered["title"]) == fits


async def test_without_vectors_the_words_of_a_goals_title_decide(
    hub: HubContext, notes: NoteService, monkeypatch: pytest.MonkeyPatch
) -> None:
    class NoVectors:
        async def embed(self, *_: object) -> None:
            raise EmbeddingsUnavailable("There are none.")

    monkeypatch.setattr(goal_matcher, "make_embedder", lambda *_: NoVectors())
    await have_goal(hub, "Half marathon")
    near, far = await notes.add(OWNER, "Shoes for a marathon"), await notes.add(OWNER, "Lentil soup")
    found = (await notes.show(near.id, OWNER)).suggested_goal
    assert found is not None
    assert found.title == "Half marathon"
    assert (await notes.show(far.id, OWNER)).suggested_goal is None


async def test_a_note_of_a_goal_is_not_offered_to_another(hub: HubContext, notes: NoteService) -> None:
    goal = await have_goal(hub, "Cook more")
    await have_goal(hub)
    note = await notes.add(OWNER, "My piano teacher", goal=goal.id)
    assert (await notes.show(note.id, OWNER)).suggested_goal is None


async def test_ten_thousand_notes_are_searched_and_only_so_many_are_given(
    hub: HubContext, owner: httpx.AsyncClient
) -> None:
    rows = [
        {
            "id": f"note_{number:026}", "user_id": OWNER if number % 2 else "ada", "goal_id": None,
            "title": f"Note {number}", "content": "Ärger mit der Tür " + "x" * 500, "written_by": "user",
            "read_from": None, "created_at": now(), "updated_at": now(),
        }
        for number in range(20_000)
    ]  # fmt: skip
    await hub.storage.database.write(lambda conn: conn.execute(insert(goal_notes), rows))
    found = (await owner.get("/notes", params={"q": "ärger 19999"})).json()["notes"]
    assert [one["title"] for one in found] == ["Note 19999"]
    many = (await owner.get("/notes", params={"q": "TÜR", "limit": 20})).json()["notes"]
    assert len(many) == 20
    assert all(len(one["excerpt"]) <= 200 for one in many)
    assert (await owner.get("/notes", params={"q": "nowhere"})).json()["notes"] == []
    assert (await owner.get("/notes", params={"limit": 501})).status_code == 422
    seen: list[str] = []
    query: dict[str, str] = {}
    while not seen or "before" in query:
        page = (await owner.get("/notes", params={"limit": "500", **query})).json()
        seen += [one["noteId"] for one in page["notes"]]
        query = {} if page["before"] is None else {"before": page["before"]}
    assert seen == [str(row["id"]) for row in reversed(rows) if row["user_id"] == OWNER]


@pytest.mark.req("MEM-11", "THR-03")
async def test_notes_are_paged_also_of_one_goal_and_with_words(
    hub: HubContext, owner: httpx.AsyncClient, ada: httpx.AsyncClient
) -> None:
    goal = await have_goal(hub)
    for number in range(6):
        told: dict[str, object] = {"title": f"Note {number}", "goal": goal.id if number % 2 else None}
        await owner.post("/notes", json=told)
    first = (await owner.get("/notes", params={"goal": goal.id, "limit": 2})).json()
    assert [one["title"] for one in first["notes"]] == ["Note 5", "Note 3"]
    rest = (await owner.get("/notes", params={"goal": goal.id, "limit": 2, "before": first["before"]})).json()
    assert ([one["title"] for one in rest["notes"]], rest["before"]) == (["Note 1"], None)
    found = (await owner.get("/notes", params={"q": "note", "limit": 4})).json()
    older = (await owner.get("/notes", params={"q": "note", "before": found["before"]})).json()
    assert [one["title"] for one in older["notes"]] == ["Note 1", "Note 0"]
    assert (await ada.get("/notes", params={"before": found["before"]})).status_code == 404
    assert (await owner.get("/notes", params={"before": "note_that_is_gone"})).status_code == 404


@pytest.mark.parametrize(
    "url",
    [
        "", "not an address", "ftp://example.org/", "javascript:alert(1)", "file:///etc/passwd", "https://",
        "https://me:password@example.org/", "https://example.org/a b", "https://e.org/" + "x" * 3_000,
    ],
)  # fmt: skip
async def test_what_is_no_address_of_the_web_is_refused(owner: httpx.AsyncClient, notes: NoteService, url: str) -> None:
    refused = await owner.post("/links", json={"url": url})
    assert refused.status_code == 422
    assert "pattern" not in refused.json()["error"]["message"]
    with pytest.raises(InvalidArguments):
        await notes.add_link(OWNER, url)
    assert (await owner.get("/notes")).json()["notes"] == []


async def test_without_the_searcher_a_link_is_kept_with_the_reason(owner: httpx.AsyncClient) -> None:
    note = (await owner.post("/links", json={"url": "https://example.org/scales"})).json()
    assert note["title"] == "https://example.org/scales"
    assert note["content"].startswith("Link: https://example.org/scales\n\nThe page was not read: ")
    assert (note["trust"], note["readFrom"]) == ("untrusted", ["https://example.org/scales"])


async def test_a_token_of_this_home_is_not_kept_in_a_note(hub: HubContext, owner: httpx.AsyncClient) -> None:
    token = hub.base.home.token_file.read_text().strip()
    note = (await owner.post("/notes", json={"title": "Token", "content": f"It is {token}."})).json()
    assert token not in note["content"]
