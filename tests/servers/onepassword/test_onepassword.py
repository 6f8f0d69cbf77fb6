"""The vaults as an agent sees them: everything but what is secret."""

import asyncio
import json
from pathlib import Path

import pytest

from annabelle.core.errors import (
    InvalidArguments,
    NotAllowed,
    NotFound,
    RetryByModel,
    ToolTimeout,
    TooManyRequests,
    Unavailable,
)
from annabelle.servers.kit import ToolServer
from annabelle.servers.kit.call import Call, enter_call
from annabelle.servers.onepassword.command import OnePasswordConfig
from annabelle.servers.onepassword.op_items import HandleHolder, HeldSecret, SecretHandles
from annabelle.servers.onepassword.server import build
from support.op_stand_in import CARD, NOTE, PASSWORD, StandIn
from support.toolbox import alive, eventually

pytestmark = pytest.mark.req("SRV-OPW", "SRV-ALL")


async def ask(server: ToolServer, name: str, **arguments: object) -> dict[str, object]:
    return (await server.tools[name].call(arguments)).model_dump()


async def revealed(server: ToolServer, handle: object, **who: str) -> object:
    """As the hub asks for it, on behalf of somebody."""
    enter_call(Call(**{"agent_id": "annabelle", "user_id": "owner", "caller": "hub", **who}))
    return (await ask(server, "reveal", handle=handle))["value"]


async def test_vaults_are_listed_with_their_names_and_sizes(vault: ToolServer, op: StandIn):
    answer = await ask(vault, "list_vaults")
    assert answer == {
        "vaults": [{"id": "vp", "name": "Private", "items": 3}, {"id": "vw", "name": "Büro & Co", "items": 1}]
    }
    assert op.calls == [["vault", "list", "--format=json"]]


async def test_items_are_listed_without_anything_secret(vault: ToolServer, op: StandIn):
    answer = await ask(vault, "list_items", vault="Private")
    assert [item["title"] for item in answer["items"]] == ["Bank", "Visa", "日記 📓"]  # type: ignore[index,union-attr]
    text = json.dumps(answer, ensure_ascii=False)
    assert "https://bank.example/login" in text
    assert not [secret for secret in ("ann:pw", "token=abc", NOTE, "4111") if secret in text]
    assert op.calls == [["item", "list", "--vault=Private", "--format=json"]]


async def test_items_of_some_kinds_are_asked_for_as_op_spells_them(vault: ToolServer, op: StandIn):
    answer = await ask(vault, "list_items", vault="Private", categories=["secure_note", "CREDIT CARD"])
    assert [item["id"] for item in answer["items"]] == ["i2", "i3"]  # type: ignore[index,union-attr]
    assert "--categories=Secure Note,Credit Card" in op.calls[0]
    with pytest.raises(InvalidArguments, match="category"):
        await ask(vault, "list_items", vault="Private", categories=["Login,--help"])


async def test_a_long_list_comes_in_pages(vault: ToolServer, op: StandIn):
    vault_of = {"id": "vp", "name": "Private"}
    op.know(items=[{"id": f"i{n:03}", "title": f"T{n:03}", "category": "LOGIN", "vault": vault_of} for n in range(120)])
    seen: list[str] = []
    token: object = None
    while True:
        answer = await ask(vault, "list_items", vault="Private", page_token=token)
        seen += [item["id"] for item in answer["items"]]  # type: ignore[index,union-attr]
        token = answer["next_page"]
        if token is None:
            break
    assert seen == [f"i{n:03}" for n in range(120)]


@pytest.mark.req("POL-06")
async def test_an_item_is_shown_with_handles_in_place_of_secrets(vault: ToolServer):
    answer = await ask(vault, "get_item", item="Bank", vault="Private")
    fields = {field["label"]: field for field in answer["fields"]}  # type: ignore[index,union-attr]
    assert fields["username"]["value"] == "ann"
    for label in ("password", "notesPlain", "one-time password", "api key"):
        assert fields[label]["value"] is None
        assert str(fields[label]["handle"]).startswith("secret://onepassword/")
    assert (fields["second password"]["value"], fields["second password"]["handle"]) == (None, None)
    assert fields["hint"]["value"] == f"it is {fields['password']['handle']}!"
    text = json.dumps(answer, ensure_ascii=False)
    assert not [secret for secret in (PASSWORD, NOTE, "otpauth", "123456", "plain-looking", "ann:pw") if secret in text]
    assert await revealed(vault, fields["password"]["handle"]) == PASSWORD
    assert await revealed(vault, fields["notesPlain"]["handle"]) == NOTE


@pytest.mark.req("POL-06")
async def test_a_one_time_code_is_read_anew_when_it_is_needed(vault: ToolServer, op: StandIn):
    answer = await ask(vault, "get_item", item="i1")
    handle = next(field["handle"] for field in answer["fields"] if field["type"] == "OTP")  # type: ignore[index,union-attr]
    assert await revealed(vault, handle) == "222222"
    op.know(secrets={"op://vp/i1/otp?attribute=otp": "333333"})
    assert await revealed(vault, handle) == "333333"


@pytest.mark.req("POL-06")
async def test_numbers_of_cards_and_notes_are_secrets_too(vault: ToolServer):
    card = await ask(vault, "get_item", item="Visa")
    note = await ask(vault, "get_item", item="日記 📓")
    text = json.dumps([card, note], ensure_ascii=False)
    assert not [secret for secret in (CARD, NOTE, "hidden-holder") if secret in text]
    assert "203001" in text


@pytest.mark.req("POL-06")
async def test_a_secret_is_read_as_a_handle_that_says_what_it_is(vault: ToolServer, op: StandIn):
    result = await vault.tools["read_secret"].call({"reference": "op://Private/Bank/password"})
    answer = result.model_dump()
    assert (answer["item"], answer["field"]) == ("Bank", "password")
    assert PASSWORD not in str(answer) + result.to_text()  # type: ignore[attr-defined]
    assert op.calls == [
        ["item", "get", "Bank", "--vault=Private", "--format=json"],
        ["read", "--no-newline", "op://Private/Bank/password"],
    ]
    assert await revealed(vault, answer["handle"]) == PASSWORD


@pytest.mark.req("POL-06")
async def test_a_handle_is_bound_to_its_item_and_to_the_sites_of_it(vault: ToolServer, op: StandIn):
    op.know(secrets={"op://vp/i1/password": PASSWORD, "op://Private/Visa/number": CARD})
    bank = await ask(vault, "read_secret", reference="op://vp/i1/password")
    assert (bank["item"], bank["urls"]) == ("Bank", ["https://bank.example/login"])
    shown = await ask(vault, "get_item", item="Bank", vault="Private")
    card = await ask(vault, "read_secret", reference="op://Private/Visa/number")
    enter_call(Call(agent_id="annabelle", user_id="owner", caller="hub"))
    for handle in (bank["handle"], shown["fields"][1]["handle"]):  # type: ignore[index]
        assert (await ask(vault, "reveal", handle=handle))["sites"] == ["https://bank.example/login"]
    assert (await ask(vault, "reveal", handle=card["handle"]))["sites"] == []


@pytest.mark.req("POL-06")
async def test_a_handle_is_good_for_the_one_who_asked_and_only_through_the_hub(vault: ToolServer):
    handle = (await ask(vault, "read_secret", reference="op://Private/Bank/password"))["handle"]
    with pytest.raises(NotAllowed):
        await ask(vault, "reveal", handle=handle)
    with pytest.raises(RetryByModel, match="not known"):
        await revealed(vault, handle, agent_id="another")
    with pytest.raises(RetryByModel, match="not known"):
        await revealed(vault, handle, user_id="somebody")
    assert await revealed(vault, handle) == PASSWORD


@pytest.mark.req("POL-06")
def test_handles_expire_and_do_not_pile_up():
    now = [0.0]
    handles = SecretHandles(seconds=600, most=3, clock=lambda: now[0])
    holder = HandleHolder("annabelle", "owner")
    first = handles.issue(HeldSecret("Bank", "password", "v"), holder)
    assert handles.resolve(first, holder).value == "v"
    now[0] = 600.0
    with pytest.raises(RetryByModel, match="no longer"):
        handles.resolve(first, holder)
    kept = [handles.issue(HeldSecret("Bank", "password", str(n)), holder) for n in range(5)]
    assert len(handles) == 3
    assert handles.resolve(kept[-1], holder).value == "4"
    with pytest.raises(RetryByModel):
        handles.resolve(kept[0], holder)


def test_a_secret_is_in_no_repr():
    assert "hunter2" not in repr(HeldSecret("Bank", "password", "hunter2"))
    assert "tok-1" not in repr(OnePasswordConfig(environment={"OP_SERVICE_ACCOUNT_TOKEN": "tok-1"}))


@pytest.mark.parametrize("name", ["-h", "--vault=Other", " --session", "", "  ", "a\nb", "a\x00b", "\x1b[31m"])
async def test_a_name_that_could_be_an_option_or_a_trick_never_reaches_op(vault: ToolServer, op: StandIn, name: str):
    for tool, arguments in (
        ("get_item", {"item": name}),
        ("get_item", {"item": "Bank", "vault": name}),
        ("list_items", {"vault": name}),
    ):
        with pytest.raises(InvalidArguments):
            await ask(vault, tool, **arguments)
    assert op.calls == []


async def test_what_a_shell_would_run_is_only_a_name(vault: ToolServer, op: StandIn, tmp_path: Path):
    name = f"$(touch {tmp_path}/ran); `id` && x | y > z"
    with pytest.raises(NotFound):
        await ask(vault, "get_item", item=name)
    assert op.calls[0][2] == name
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "reference",
    ["", "Bank", "op://", "op://a", "op://a/b", "op://a/b/c/d/e", "https://a/b/c", "-op://a/b/c", "op://a/b/c\n", "op://a/b/c?x=1&y=2"],
)  # fmt: skip
async def test_a_reference_that_is_none_never_reaches_op(vault: ToolServer, op: StandIn, reference: str):
    if reference.endswith("\n"):
        reference += "--help"
    with pytest.raises(InvalidArguments) as refused:
        await ask(vault, "read_secret", reference=reference)
    assert refused.value.field == "reference"
    assert op.calls == []


async def test_an_empty_field_and_an_ambiguous_name_are_told_apart(vault: ToolServer):
    with pytest.raises(NotFound, match="empty"):
        await ask(vault, "read_secret", reference="op://Private/Bank/empty")
    with pytest.raises(NotFound, match="no vault, item or field"):
        await ask(vault, "read_secret", reference="op://Private/Bank/none")
    with pytest.raises(RetryByModel, match="More than one"):
        await ask(vault, "get_item", item="Bank")


@pytest.mark.parametrize(
    ("complaint", "kind"),
    [
        ("You are not currently signed in. Please run `op signin --help`", Unavailable),
        ("No accounts configured for use with 1Password CLI.", Unavailable),
        ("failed to DeserializeServiceAccountAuthToken: bad service account token", Unavailable),
        ("Too many requests. Your client has been rate limited.", TooManyRequests),
        ("panic: something with s3cr3t-value inside", Unavailable),
    ],
)
async def test_what_op_complains_about_becomes_a_sentence_of_ours(
    vault: ToolServer, op: StandIn, complaint: str, kind: type[Exception]
):
    op.know(complaint=complaint)
    with pytest.raises(kind) as refused:
        await ask(vault, "list_vaults")
    error = refused.value
    assert isinstance(error, Unavailable | TooManyRequests)
    assert error.hint
    assert "s3cr3t" not in error.message + error.hint
    assert "panic" not in error.message


@pytest.mark.parametrize("raw", ["", "not json", "{}", '[{"name": 1}]', "[" * 20000, '"' + PASSWORD, "null"])
async def test_an_answer_that_is_not_understood_is_not_repeated(vault: ToolServer, op: StandIn, raw: str):
    op.know(raw=raw)
    with pytest.raises(Unavailable, match="not understood") as refused:
        await ask(vault, "list_vaults")
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


async def test_a_crash_of_op_is_an_answer(vault: ToolServer, op: StandIn):
    op.know(raw="[]", code=139)
    with pytest.raises(Unavailable):
        await ask(vault, "list_vaults")


async def test_an_op_that_hangs_is_ended_when_its_time_is_over(op: StandIn):
    op.know(hang=True)
    server = build(OnePasswordConfig(program=op.path, environment={"PATH": "/usr/bin:/bin"}, seconds=1.5))
    with pytest.raises(ToolTimeout, match="did not answer"):
        await ask(server, "list_vaults")
    pid = int((op.folder / "hanging").read_text())
    await eventually(lambda: not alive(pid))


async def test_a_cancelled_call_takes_its_op_along(vault: ToolServer, op: StandIn):
    op.know(hang=True)
    call = asyncio.create_task(ask(vault, "list_vaults"))
    await eventually(lambda: (op.folder / "hanging").exists() and (op.folder / "hanging").read_text())
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    pid = int((op.folder / "hanging").read_text())
    await eventually(lambda: not alive(pid))


async def test_op_sees_only_what_it_needs(op: StandIn, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", f"{op.folder}:/usr/bin:/bin")
    monkeypatch.setenv("OP_SERVICE_ACCOUNT_TOKEN", "ops_token")
    monkeypatch.setenv("GROQ_API_KEY", "somebody-elses")
    await ask(build(), "list_vaults")
    assert set(op.environments[0]) - {"LC_CTYPE"} == {"HOME", "OP_SERVICE_ACCOUNT_TOKEN", "PATH"}


async def test_without_op_every_tool_says_how_to_get_it(tmp_path: Path):
    server = build(OnePasswordConfig(environment={"PATH": str(tmp_path)}))
    calls: dict[str, dict[str, object]] = {
        "list_vaults": {},
        "list_items": {"vault": "Private"},
        "get_item": {"item": "Bank"},
        "read_secret": {"reference": "op://Private/Bank/password"},
    }
    for name, arguments in calls.items():
        with pytest.raises(Unavailable, match="not installed") as refused:
            await ask(server, name, **arguments)
        assert "OP_PATH" in (refused.value.hint or "")
    assert "not installed" in str((await ask(server, "readiness"))["missing"])


async def test_readiness_says_when_nobody_is_signed_in(vault: ToolServer, op: StandIn):
    assert (await ask(vault, "readiness"))["ready"] is True
    op.know(accounts=[])
    assert "op signin" in str((await ask(vault, "readiness"))["missing"])


async def test_two_calls_at_once_get_their_own_answers(vault: ToolServer):
    bank, visa = await asyncio.gather(
        ask(vault, "get_item", item="i1"), ask(vault, "get_item", item="i2"), return_exceptions=False
    )
    assert (bank["title"], visa["title"]) == ("Bank", "Visa")
