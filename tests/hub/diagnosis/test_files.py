"""Sizes and ages: sparse files of the size in question, and files whose age is set."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from annabelle.core.home import Home
from annabelle.hub.diagnosis.error_baseline import HOUR, WINDOW, ErrorBaseline, ErrorSample, exceeds_baseline
from annabelle.hub.diagnosis.offline import offline_context
from annabelle.hub.diagnosis.report import CHECKS, render_report, run_checks
from hub.diagnosis.conftest import Examined
from hub.skills.house import House, open_house
from support.vector_server import VectorServer
from support.virtual_clock import VirtualClock

MB = 1_000_000


def make_sparse(path: Path, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(size)


@pytest.mark.req("DIA-01")
async def test_ollama_is_missed_only_where_something_uses_it(home: Home, clock: VirtualClock) -> None:
    with VectorServer() as server:
        url, server.behave = server.url, lambda _asked: (200, {"models": []})
        async with open_house(home, clock, embedding_provider="ollama", ollama_base_url=url) as house:
            assert await Examined(house)("ollama-connectivity") == []
            assert [one.path for one in server.asked] == ["/api/tags"]
    gone: dict[str, object] = {"ollama_base_url": url}
    for use in (
        {"embedding_provider": "ollama"},
        {"thinker_llm_provider": "ollama"},
        {"llm_fallbacks": "groq:a, ollama:b"},
    ):
        async with open_house(home, clock, **gone, **use) as house:
            (found,) = await Examined(house)("ollama-connectivity")
            assert (found.severity, found.subject) == ("warning", url)
    async with open_house(home, clock, **gone) as house:
        assert await Examined(house)("ollama-connectivity") == [], "nothing uses it"


@pytest.mark.req("DIA-01")
@pytest.mark.parametrize(
    ("check", "file", "limit", "severity"),
    [
        ("embedding-cache-size", "data/embeddings/vectors.db", 10 * MB, "info"),
        ("memory-db-size", "data/memory.db", 50 * MB, "info"),
        ("log-file-sizes", "logs/filer.log", 50 * MB, "warning"),
        ("log-file-sizes", "logs/hub.out", 50 * MB, "warning"),
    ],
)
async def test_a_file_is_large_from_the_limit_on(
    home: Home, examine: Examined, check: str, file: str, limit: int, severity: str
) -> None:
    make_sparse(home.root / file, limit - 1)
    assert await examine(check) == []
    make_sparse(home.root / file, limit)
    assert await examine.severities(check) == [severity]


async def test_logs_of_a_build_and_rotated_ones_may_be_large(home: Home, examine: Examined) -> None:
    make_sparse(home.logs / "build-today.log", 60 * MB)
    make_sparse(home.logs / "hub.log.1", 60 * MB)
    assert await examine("log-file-sizes") == []


@pytest.mark.req("DIA-01")
async def test_the_data_folder_is_measured_with_all_its_files(home: Home) -> None:
    """Without a hub, whose database would add to it."""
    make_sparse(home.data / "some.file", 40 * MB)
    for size, said in ((60 * MB - 1, []), (60 * MB, ["info"])):
        make_sparse(home.data / "browser" / "profile", size)
        with offline_context(home) as context:
            report = await run_checks(CHECKS, context)
        assert [one.severity for one in report.problems if one.check == "data-dir-size"] == said


def write_log(home: Home, clock: VirtualClock, errors: int, warnings: int, name: str = "filer.log") -> None:
    at = (clock.now() - timedelta(minutes=5)).astimezone()
    levels = ["ERROR" if number else "CRITICAL" for number in range(errors)] + ["WARNING"] * warnings
    lines = [f"{at:%Y-%m-%d %H:%M:%S},000 {level:<7} tr_x a: b" for level in levels]
    old = f"{at - timedelta(hours=2):%Y-%m-%d %H:%M:%S},000 ERROR   tr_x a: b"
    (home.logs / name).write_text("\n".join([old, *lines, "a line without a date", ""]))


def write_baseline(home: Home, clock: VirtualClock, count: int, errors: int, warnings: int) -> None:
    baseline = ErrorBaseline(home.error_baseline_file)
    for hour in range(count, 0, -1):
        baseline.add(ErrorSample(at=clock.now() - hour * HOUR, errors=errors, warnings=warnings))


@pytest.mark.req("DIA-01", "DIA-02")
@pytest.mark.parametrize(
    ("errors", "warnings", "usual", "samples", "found"),
    [
        (3, 0, (1, 0), 6, True),
        (3, 0, (1, 0), 5, False),  # too few samples
        (2, 0, (0, 0), 6, False),  # too few errors to matter
        (3, 0, (0, 0), 6, True),
        (5, 0, (2, 0), 6, False),  # less than three times
        (6, 0, (2, 0), 6, True),
        (0, 4, (0, 0), 6, False),
        (0, 5, (0, 1), 6, True),
        (0, 5, (0, 2), 6, False),
    ],
)
async def test_many_errors_are_those_far_above_what_is_usual(
    home: Home,
    clock: VirtualClock,
    examine: Examined,
    errors: int,
    warnings: int,
    usual: tuple[int, int],
    samples: int,
    found: bool,
) -> None:
    write_baseline(home, clock, samples, *usual)
    write_log(home, clock, errors, warnings)
    assert await examine.severities("error-rate-baseline") == (["warning"] if found else [])


@pytest.mark.req("DIA-02")
def test_usual_is_the_week_before_this_hour_and_not_what_this_hour_brought(clock: VirtualClock) -> None:
    def sample(before: timedelta, errors: int) -> ErrorSample:
        return ErrorSample(at=clock.now() - before, errors=errors, warnings=0)

    usual = [sample(hour * HOUR, 1) for hour in range(6, 0, -1)]
    assert exceeds_baseline(sample(timedelta(), 3), [*usual, sample(HOUR / 2, 3)])
    assert exceeds_baseline(sample(timedelta(), 3), [sample(WINDOW + HOUR, 90), *usual])


@pytest.mark.req("DIA-02")
async def test_the_hub_counts_once_an_hour_and_keeps_a_week(home: Home, clock: VirtualClock, house: House) -> None:
    diagnosis = house.machine.hub.services.upkeep.diagnosis
    write_log(home, clock, errors=2, warnings=1)
    await diagnosis.sample_errors()
    await diagnosis.sample_errors()
    baseline = ErrorBaseline(home.error_baseline_file)
    assert [(one.errors, one.warnings) for one in baseline.load()] == [(2, 1)], "one for each hour"
    clock.moment += timedelta(hours=168)
    await diagnosis.sample_errors()
    assert len(baseline.load()) == 2
    clock.moment += timedelta(hours=1)
    await diagnosis.sample_errors()
    assert [one.errors for one in baseline.load()] == [0, 0], "the first is older than a week"


@pytest.mark.req("DIA-02")
async def test_errors_of_this_hour_count_in_all_logs_also_where_one_was_rotated(
    home: Home, clock: VirtualClock, examine: Examined
) -> None:
    write_baseline(home, clock, 6, 1, 0)
    write_log(home, clock, 1, 0)
    write_log(home, clock, 1, 0, "hub.log")
    assert await examine("error-rate-baseline") == []
    write_log(home, clock, 1, 0, "filer.log.1")
    assert await examine.severities("error-rate-baseline") == ["warning"]


@pytest.mark.req("DIA-02")
async def test_a_torn_baseline_is_put_aside_begun_again_and_said_once(
    home: Home, examine: Examined, house: House
) -> None:
    home.error_baseline_file.write_text('{"samples": [{"at": "2026-')
    assert await examine.severities("error-rate-baseline") == ["info"]
    diagnosis, notices = house.machine.hub.services.upkeep.diagnosis, house.machine.hub.base.notices
    await diagnosis.sample_errors()
    assert [one.topic for one in notices.all()].count("error_baseline") == 1
    notices.clear("error_baseline")
    await diagnosis.sample_errors()
    assert [one.topic for one in notices.all()].count("error_baseline") == 0
    assert home.error_baseline_file.with_name("error-baseline.json.bad").read_text() == '{"samples": [{"at": "2026-'
    assert await examine("error-rate-baseline") == []


@pytest.mark.req("DIA-01")
async def test_traces_are_missed_only_if_something_was_answered_since(
    home: Home, clock: VirtualClock, house: House, examine: Examined
) -> None:
    home.traces_file.write_text("{}\n")
    await house.owner.post("/message", params={"wait": 20}, json={"text": "hello"})
    clock.moment = max(clock.moment, clock.now()) + timedelta(minutes=5)

    def age(span: timedelta) -> None:
        moment = (clock.now() - span).timestamp()
        os.utime(home.traces_file, (moment, moment))

    age(timedelta(minutes=59))
    assert await examine("trace-log-freshness") == []
    age(timedelta(hours=1, seconds=1))
    assert await examine.severities("trace-log-freshness") == ["warning"]
    home.traces_file.unlink()
    assert await examine.severities("trace-log-freshness") == ["warning"]


async def test_a_hub_that_nobody_talks_to_need_not_trace(home: Home, examine: Examined) -> None:
    assert not home.traces_file.exists()
    assert await examine("trace-log-freshness") == []


@pytest.mark.req("DIA-01")
async def test_the_description_of_the_home_is_missed_and_an_old_one_is_fine_while_it_is_right(
    home: Home, clock: VirtualClock, examine: Examined
) -> None:
    assert await examine.severities("doc-freshness") == ["info"], "no server was started, so nothing was written"
    home.known_servers_file.write_text(json.dumps({"servers": [], "tools": {}}))
    clock.moment += timedelta(hours=48)
    assert await examine("doc-freshness") == []
    home.known_servers_file.write_text(json.dumps({"servers": ["gone"], "tools": {"gone": 1}}))
    written = home.known_servers_file.stat().st_mtime
    for span, said in ((timedelta(hours=24), []), (timedelta(hours=24, seconds=1), ["info"])):
        clock.moment = clock.moment.fromtimestamp(written, clock.moment.tzinfo) + span
        assert await examine.severities("doc-freshness") == said
    for page in home.documentation.glob("*.md"):
        page.unlink()
    assert await examine.severities("doc-freshness") == ["info"]


async def test_the_report_for_a_chat_is_short_and_names_commands_of_a_chat(home: Home, house: House) -> None:
    make_sparse(home.logs / "filer.log", 50 * MB)
    house.machine.hub.agents.halts.stop("annabelle", "owner")
    text = render_report(await house.machine.hub.services.upkeep.diagnosis.run())
    assert text.splitlines()[0].startswith("2 warnings, ")
    assert "! annabelle is stopped. (halt-manager)\n   Let it go on with /resume annabelle" in text
