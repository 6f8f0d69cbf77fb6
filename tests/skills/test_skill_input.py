"""What models give for a skill, and what is made of it."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from annabelle.core.errors import InvalidArguments
from annabelle.core.tools import JsonObject
from annabelle.skills.skill_input import SkillInput, SkillPlan

NOW = datetime(2026, 11, 17, 14, 30, tzinfo=UTC)
pytestmark = pytest.mark.req("SKL-01")


def read(**given: object) -> SkillInput:
    return SkillInput.read(given, NOW, ZoneInfo("Europe/Berlin"))


@pytest.mark.parametrize(
    "given",
    [
        {"trigger_config": {"schedule": "0 6 * * *", "timezone": "Asia/Tokyo"}},
        {"schedule": "0 6 * * *", "timezone": "Asia/Tokyo"},
        {"trigger_config": {"cronExpression": "0 6 * * *", "timeZone": "Asia/Tokyo"}},
        {"cron": "0 6 * * *", "timezone": "Asia/Tokyo", "trigger_type": "cron"},
        {"trigger_config": '{"cron_expression": "0 6 * * *", "timezone": "Asia/Tokyo"}'},
    ],
)
def test_a_schedule_is_found_wherever_it_stands(given: JsonObject) -> None:
    found = read(name="x", message="y", **given)
    assert found.trigger == {"schedule": "0 6 * * *", "timezone": "Asia/Tokyo"}
    assert found.trigger_type == "cron"


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ({"in_minutes": 10}, "2026-11-17T14:40:00+00:00"),
        ({"in_minutes": "10"}, "2026-11-17T14:40:00+00:00"),
        ({"trigger_config": {"in_hours": 2}}, "2026-11-17T16:30:00+00:00"),
        ({"at": "2026-11-18T09:00"}, "2026-11-18T08:00:00+00:00"),
        ({"when": "tomorrow at 9"}, "2026-11-18T08:00:00+00:00"),
        ({"trigger_config": "tomorrow at 9"}, "2026-11-18T08:00:00+00:00"),
        ({"at": "2026-11-18T09:00", "timezone": "Asia/Tokyo"}, "2026-11-18T00:00:00+00:00"),
        ({"when": "tomorrow at 9", "timezone": "Asia/Tokyo"}, "2026-11-18T00:00:00+00:00"),
    ],
)
def test_a_span_is_made_a_moment_when_the_skill_is_made(given: JsonObject, at: str) -> None:
    assert read(message="stretch", **given).trigger == {"at": at}


def test_numbers_and_flags_as_text_and_a_list_in_a_line_are_taken() -> None:
    found = read(
        max_steps="7", notify_on_completion="false", required_tools="a_b, c_d", instructions="do", when="daily"
    )
    assert (found.max_steps, found.notify, found.required_tools) == (7, False, ("a_b", "c_d"))


@pytest.mark.req("SKL-02")
def test_a_plan_of_one_step_is_a_call_and_of_more_the_tools_for_a_model() -> None:
    one = read(execution_plan=[{"id": "1", "toolName": "everyday_get_time", "parameters": {"zones": ["Oslo"]}}])
    assert one.plan == SkillPlan("everyday_get_time", {"zones": ["Oslo"]})
    two = read(execution_plan=[{"toolName": "a_b"}, {"toolName": "c_d"}], required_tools=["e_f"])
    assert (two.plan, two.required_tools) == (None, ("e_f", "a_b", "c_d"))


@pytest.mark.req("SKL-09")
def test_a_reminder_is_one_message_and_named_after_it() -> None:
    found = read(message="stretch", when="in 10 minutes")
    assert found.plan == SkillPlan("send_message", {"message": "⏰ stretch"})
    assert found.name == "stretch"


@pytest.mark.parametrize(
    "given",
    [
        {"in_minutes": 0},
        {"in_minutes": "soon"},
        {"in_minutes": 10**9},
        {"interval_minutes": -5},
        {"when": "yesterday"},
        {"at": "2020-01-01T00:00"},
        {"schedule": "0 0 30 2 *"},
        {"schedule": "0 6 * * *", "timezone": "Mars/Olympus"},
        {"in_minutes": 5, "at": "2027-01-01"},
        {"trigger_type": "cron"},
        {"execution_plan": [{"parameters": {}}]},
        {"execution_plan": [{"toolName": "a_b", "parameters": "text"}]},
        {"at": "2026-02-30T10:00"},
        {"when": "31 april"},
        {"when": "at 25:00"},
        {"when": "in 0 minutes"},
        {"in_minutes": float("nan")},
        {"in_minutes": True},
        {"schedule": ["0 6 * * *"]},
        {"timezone": "Europe", "when": "daily"},
        {"timezone": "\x00", "when": "daily"},
        {"max_steps": "many", "when": "daily"},
    ],
)
def test_what_can_not_be_meant_is_refused_in_a_sentence(given: JsonObject) -> None:
    with pytest.raises(InvalidArguments) as refused:
        read(message="stretch", **given)
    assert refused.value.message.endswith(".")
