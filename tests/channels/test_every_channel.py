"""What every channel promises, whatever its wire: one hub listens to all of them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest

from annabelle.core.home import Home
from channels.correspondents import EVERY_CHANNEL, Correspondents
from hub.hubs import HubProcess, fresh_home, wait_for
from support.few_servers import only
from support.scripted_model import ScriptedServer, plan_text

_numbers = itertools.count(1)


@dataclass
class ChannelUnderTest:
    hub: HubProcess
    people: Correspondents

    def pair(self) -> str:
        """A new person who may speak."""
        account = self.people.new_account(next(_numbers))
        code = self.hub.http.post(f"/channels/{self.people.name}/pair", json={}).json()["code"]
        self.people.say(account, f"/pair {code}")
        self.wait_for_text(account, "You are connected")
        return account

    def wait_for_text(self, account: str, part: str) -> str:
        def look() -> str | None:
            return next((text for text in self.people.texts(account) if part in text), None)

        return wait_for(look, f"a message with “{part}” in {self.people.name}; there are {self.people.texts(account)}")

    def ask(self, account: str, answer: str) -> None:
        self.people.say(account, plan_text([], say=answer))
        self.wait_for_text(account, answer)

    def count(self, account: str, part: str) -> int:
        return sum(part in text for text in self.people.texts(account))

    def ignored(self) -> int:
        listed = self.hub.http.get("/channels").json()["channels"]
        return next(one["ignored"] for one in listed if one["name"] == self.people.name)

    def is_listening(self) -> bool:
        listed = self.hub.http.get("/channels").json()["channels"]
        return any(one["name"] == self.people.name and one["state"] == "listening" for one in listed)

    def notices(self) -> list[str]:
        return [one["text"] for one in self.hub.http.get("/status").json()["notices"]]


@contextmanager
def hub_with_every_channel(home: Home, model: ScriptedServer) -> Iterator[dict[str, ChannelUnderTest]]:
    with ExitStack() as stack:
        everyone: list[Correspondents] = [stack.enter_context(opened()) for opened in EVERY_CHANNEL.values()]
        settings = {name: value for people in everyone for name, value in people.settings.items()}
        hub = HubProcess(home, model.openai_url, CHANNEL_POLL_INTERVAL_MS="200", **only(), **settings).start()
        stack.callback(hub.end)
        channels = {people.name: ChannelUnderTest(hub, people) for people in everyone}
        for channel in channels.values():
            wait_for(channel.is_listening, f"{channel.people.name} listens")
        yield channels


@pytest.fixture(scope="module")
def every_channel(
    tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer
) -> Iterator[dict[str, ChannelUnderTest]]:
    with hub_with_every_channel(fresh_home(tmp_path_factory.mktemp("every-channel")), model) as channels:
        yield channels


@pytest.fixture(params=sorted(EVERY_CHANNEL))
def channel(request: pytest.FixtureRequest, every_channel: dict[str, ChannelUnderTest]) -> ChannelUnderTest:
    return every_channel[request.param]


@pytest.mark.req("CHN-01", "CHN-02", "BEY-01")
@pytest.mark.incident("I-06")
def test_a_paired_person_is_answered_once_and_a_stranger_gets_nothing(channel: ChannelUnderTest) -> None:
    stranger, before = channel.people.new_account(next(_numbers)), channel.ignored()
    person = channel.pair()
    channel.people.say(stranger, plan_text([], say="Hello, stranger."))
    channel.people.say(stranger, "/pair WRNGCD23")
    channel.ask(person, "Hello.")
    wait_for(lambda: channel.ignored() >= before + 1, "an ignored message")
    channel.ask(person, "Still you.")
    assert channel.count(person, "Hello.") == 1
    assert channel.people.texts(stranger) == []


@pytest.mark.req("CHN-04")
@pytest.mark.incident("I-20")
def test_the_same_update_twice_is_answered_once(channel: ChannelUnderTest) -> None:
    person = channel.pair()
    update = channel.people.say(person, plan_text([], say="Once."))
    channel.people.deliver_again(person, update)
    channel.wait_for_text(person, "Once.")
    channel.ask(person, "After.")
    assert channel.count(person, "Once.") == 1


@pytest.mark.req("CHN-04", "TRU-02")
def test_a_hub_that_is_killed_in_the_middle_answers_everything_once(home: Home, model: ScriptedServer) -> None:
    with hub_with_every_channel(home, model) as channels:
        talks = [(channel, channel.pair()) for channel in channels.values()]
        for channel, person in talks:
            for number in range(3):
                channel.people.say(person, plan_text([], say=f"Number {number}."))
        talks[0][0].wait_for_text(talks[0][1], "Number 0.")
        hub = talks[0][0].hub
        hub.kill()
        for channel, person in talks:
            channel.people.say(person, plan_text([], say="Number 3."))
        hub.start()
        for channel, person in talks:
            channel.wait_for_text(person, "Number 3.")
            texts, wanted = channel.people.texts(person), [f"Number {number}." for number in range(4)]
            # Where nobody can know whether the killed hub has sent it, that is said.
            unsure = [one for one in wanted if any("certain" in text and one in text for text in texts)]
            arrived = [text for text in texts if text in wanted]
            assert len(set(arrived)) == len(arrived), channel.people.name
            assert sorted({*arrived, *unsure}) == wanted, channel.people.name
            assert not (unsure and channel.people.doubles_are_impossible)


@pytest.mark.req("CHN-05")
def test_a_long_answer_arrives_whole(channel: ChannelUnderTest) -> None:
    person = channel.pair()
    code = "\n".join(f"line {number} < 5 & more" for number in range(500))
    channel.people.say(person, plan_text([], say=f"Here it is:\n\n```python\n{code}\n```\n\nThe **end**."))
    channel.wait_for_text(person, "The end.")
    shown = "\n".join(channel.people.texts(person))
    assert [number for number in range(500) if f"line {number} < 5 & more" not in shown] == []


@pytest.mark.req("CHN-01")
def test_what_is_refused_is_told_to_the_owner(channel: ChannelUnderTest) -> None:
    person = channel.pair()
    channel.people.refuse_messages(person)
    channel.people.say(person, plan_text([], say="Into the void."))
    wait_for(
        lambda: any("was not delivered" in one and channel.people.name in one for one in channel.notices()), "a notice"
    )
    assert channel.count(person, "Into the void.") == 0


@pytest.mark.req("TRU-02")
def test_a_cut_connection_doubles_nothing(channel: ChannelUnderTest) -> None:
    person = channel.pair()
    channel.people.cut_connection_at("Perhaps.")
    channel.people.say(person, plan_text([], say="Perhaps."))
    if channel.people.doubles_are_impossible:
        channel.wait_for_text(person, "Perhaps.")
        channel.ask(person, "After.")
        assert channel.count(person, "not certain") == 0
    else:
        channel.wait_for_text(person, "not certain")
        assert any("not known whether a message arrived" in one for one in channel.notices())
    assert [text for text in channel.people.texts(person) if text == "Perhaps."] == ["Perhaps."]


@pytest.mark.req("CST-08")
@pytest.mark.incident("I-16")
def test_programs_are_not_answered(channel: ChannelUnderTest) -> None:
    person = channel.pair()
    channel.people.say_as_program(person, plan_text([], say="To a program."))
    channel.ask(person, "To a person.")
    assert channel.count(person, "To a program.") == 0


@pytest.mark.req("CHN-01")
def test_a_file_of_the_workspace_is_sent_with_a_message(channel: ChannelUnderTest) -> None:
    person = channel.pair()
    (channel.hub.home.workspace / "list.txt").write_bytes(b"milk, eggs")
    call = ("send_message", {"message": "Here is the list.", "file": "list.txt"})
    channel.people.say(person, plan_text([call], say="Sent."))
    channel.wait_for_text(person, "Here is the list.")
    wait_for(lambda: channel.people.files(person) == [b"milk, eggs"], "the file")


@pytest.mark.req("CHN-01")
@pytest.mark.parametrize("named", ["../config/agents.json", "gone.txt", "/etc/hostname", "out", "."])
def test_nothing_outside_the_workspace_is_sent(every_channel: dict[str, ChannelUnderTest], named: str) -> None:
    channel = every_channel["telegram"]
    person = channel.pair()
    link = channel.hub.home.workspace / "out"
    if not link.is_symlink():
        link.symlink_to("/etc/hostname")
    call = ("send_message", {"message": "Here it is.", "file": named})
    channel.people.say(person, plan_text([call], say=f"No {named}."))
    channel.wait_for_text(person, f"No {named}.")
    assert channel.count(person, "Here it is.") == 0
    assert channel.people.files(person) == []
