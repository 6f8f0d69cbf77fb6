"""Goals over months: the prompt of a goal that has much to tell, and check-ins in virtual time.

Beside the prompt stands what it would be with all notes in it; beside the last check-ins of a stretch stand the first.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import sys
import tempfile
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from measure import ROOT, Report, built_in_tools, median

sys.path.insert(0, str(ROOT / "tests"))

from sqlalchemy import Connection

from annabelle.agents import find_kind
from annabelle.agents.check_in import CheckIn, set_check_in
from annabelle.agents.work import Work, queue_work
from annabelle.core.contract import TurnBrief, TurnLimits
from annabelle.core.home import Home
from annabelle.core.messages import GOALS, OWNER
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.hub.goals.goal_service import DEFAULT_TOOLS
from annabelle.hub.tools.goals import goal_tools
from annabelle.skills.due import plan_due
from annabelle.skills.schedule import parse_cron, read_schedule
from annabelle.store import goals, messages, skills
from annabelle.store.database import Database, sqlite_url
from annabelle.store.goals import NewGoal, NewNote, StoredGoal
from annabelle.store.skills import StoredFire
from annabelle.thinker.session.file_store import FileSessionStore
from annabelle.thinker.session.session_store import ConversationEnd
from hub.goals.house import GoalHouse, open_goal_house
from prompt_house import USUAL, house, weight
from support.scripted_model import Reply, Rule
from support.virtual_clock import VirtualClock
from thinker.talks import turn

BEGIN = datetime(2027, 1, 4, 5, tzinfo=UTC)
NOTE = "The teacher recommends twenty minutes a day, hands apart first, and a song that is fun. " * 12
THREAD = "thr_goal"
BERLIN = ZoneInfo("Europe/Berlin")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="Two weeks instead of a quarter, a month instead of a year"
    )
    parser.add_argument("--data", help="Taken for the sake of the other benchmarks; nothing is read from it")
    quick = parser.parse_args().quick
    report = Report("goals")
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_prompt(report, Path(folder) / "prompt"))
        asyncio.run(_quarter(report, Path(folder) / "quarter", timedelta(days=14 if quick else 91)))
        asyncio.run(_year(report, Path(folder) / "year", days=31 if quick else 365))
    report.print()


def _new_goal(number: int = 0) -> NewGoal:
    return NewGoal(
        user_id=OWNER,
        agent_id="annabelle",
        title=f"Learn the piano {number}",
        description="Play a whole song at the birthday in June, having never played before.",
        instructions="Be gentle, suggest one thing at a time, and write in the morning.",
        tools=DEFAULT_TOOLS,
    )


async def _open(folder: Path) -> Database:
    await asyncio.to_thread(folder.mkdir, parents=True)
    return await Database.open(sqlite_url(folder / "hub.db"))


def _fill(conn: Connection) -> StoredGoal:
    goal = goals.add_goal(conn, _new_goal())
    for number in range(500):
        note = NewNote(
            user_id=OWNER,
            goal_id=goal.id,
            title=f"Practice {number}",
            content=f"{number}: {NOTE}",
            written_by="user" if number % 2 else "agent",
            read_from=["searcher_web_fetch"] if number % 3 == 0 else None,
        )
        goals.add_note(conn, note)
    for number in range(50):
        goals.add_learning(
            conn, goal.id, f"Learning {number}: prefers short exercises in the evening, and songs by ABBA."
        )
    return goal


async def _prompt(report: Report, folder: Path) -> None:
    """The first request of a check-in of a goal with 500 notes, 50 learnings and 200 archived sessions."""
    database = await _open(folder / "store")
    goal = await database.write(_fill)
    work = Work(
        id="run_bench", channel=GOALS, chat_id=goal.id, user_id=OWNER, agent_id="annabelle", text=goal.words, about={}
    )
    await database.write(lambda conn: queue_work(conn, work))
    limits, settings = TurnLimits(), Settings()

    def load(conn: Connection) -> JsonObject:
        message = messages.load_message(conn, "run_bench")
        return find_kind(GOALS).load_terms(conn, message, limits, settings)

    def timed(conn: Connection) -> float:
        began = time.thread_time()
        load(conn)
        return (time.thread_time() - began) * 1000

    taken = [await database.read(timed) for _ in range(15)]
    terms = await database.read(load)
    await database.close()
    listed = built_in_tools().tools
    unused = cast("Any", None)  # only what the tools are called and take is looked at
    own = [tool.spec() for tool in goal_tools(unused, unused, unused, unused)]
    tools = [*listed, *(one for one in own if one.audience == "named")]
    body = await asyncio.to_thread(_ask_thinker, folder, terms, tools)
    tokens = weight(body)
    report.figures |= {"prompt_tokens": tokens, "prompt_tools": len(body["tools"]), "terms_cpu_ms": median(taken)}
    report.ratios["prompt_to_all_notes"] = tokens / (tokens + weight([NOTE] * 500))
    report.within("prompt of a goal, tokens", tokens, 4_000)
    report.within_time("building the prompt of a goal, CPU", median(taken), 25, cpu=True)


def _ask_thinker(folder: Path, terms: JsonObject, tools: list[Any]) -> dict[str, Any]:
    home = Home(folder / "home").prepare()
    asyncio.run(_fill_archive(FileSessionStore(home.agent("annabelle") / "sessions", "annabelle")))
    with house(folder, USUAL, tools) as made:
        fields = {name: value for name, value in terms.items() if name in TurnBrief.model_fields}
        rules = [Rule(match="How is it going", reply=Reply(text="Well."))]
        return made.turn("How is it going with the piano?", rules, thread_id=THREAD, **fields)[0]


async def _fill_archive(store: FileSessionStore) -> None:
    for number in range(200):
        at = datetime.now(UTC) - timedelta(days=201 - number)
        await store.append(THREAD, turn(number, said=f"How was day {number}?", at=at))
        summary = f"They spoke about practice on day {number}. The left hand is still slow. A new song was chosen."
        await store.archive(THREAD, ConversationEnd(f"msg_{number}", "session_timeout", summary))
    await store.close()


async def _quarter(report: Report, folder: Path, span: timedelta) -> None:
    """Ten goals with daily check-ins, each a turn; the thinker is played."""
    home = Home(folder).prepare()
    clock = VirtualClock(BEGIN)
    async with open_goal_house(home, clock) as made:
        made.play(lambda brief: {"calls": [], "say": f"Day {brief.message_id[-12:]}: keep going."})
        for number in range(10):
            await made.add(f"Goal {number}", check_in={"frequency": "daily", "time": f"{7 + number:02}:00"})
        sizes = [await _size(made)]
        thirds = [span / 3] * 3
        for part in thirds:
            await made.house.run(part)
            await made.rest()
            sizes.append(await _size(made))
        fires = [one for one in await made.house.service.history(OWNER, None, 100_000) if one.name.startswith("Check")]
        briefs = [one for one in made.thinker.briefs if one.channel == GOALS]
        lengths = [len(one.model_dump_json()) for one in briefs]
    grown = [after - before for before, after in itertools.pairwise(sizes)]
    report.figures |= {"quarter_check_ins": len(fires), "quarter_bytes_a_check_in": grown[-1] / (len(fires) / 3)}
    report.ratios["storage_last_third_to_second"] = grown[2] / grown[1]
    report.ratios["prompt_last_to_first"] = median(lengths[-20:]) / median(lengths[10:30])
    report.within("check-ins missed in a quarter", 10 * span.days - _count_finished(fires), 0)
    report.within("storage of the last third to the second", report.ratios["storage_last_third_to_second"], 1.1)
    report.within("prompt at the end to the beginning", report.ratios["prompt_last_to_first"], 1.05)


def _count_finished(fires: Iterable[StoredFire]) -> int:
    return sum(one.state == "finished" for one in fires)


async def _size(made: GoalHouse) -> int:
    """Pages of the store that are in use, in bytes."""

    def read(conn: Connection) -> int:
        pragma = {name: conn.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("page_count", "page_size")}
        free = conn.exec_driver_sql("PRAGMA freelist_count").scalar()
        return int((pragma["page_count"] or 0) - (free or 0)) * int(pragma["page_size"] or 0)

    return await made.read(read)


async def _year(report: Report, folder: Path, *, days: int) -> None:
    """Fifty goals with daily check-ins, by scheduler and store alone."""
    database = await _open(folder)

    def begin(conn: Connection) -> None:
        for number in range(50):
            goal = goals.add_goal(conn, _new_goal(number))
            schedule = parse_cron(f"{number} 8 * * *", BERLIN)
            set_check_in(conn, goal, CheckIn(sort="recurring", schedule=schedule), BEGIN)

    await database.write(begin)
    spent: list[float] = []
    fired = 0
    for day in range(1, days + 1):
        at = BEGIN + timedelta(days=day)

        def fire(conn: Connection, at: datetime = at) -> int:
            count = 0
            for skill in skills.list_due_skills(conn, at, 500):
                schedule = read_schedule(skill.trigger)
                assert schedule is not None
                assert skill.next_due is not None
                plan = plan_due(schedule, skill.next_due, at, "run")
                for added in skills.add_fires(conn, skill, plan.fires):
                    skills.begin_fire(conn, added.id, at)
                    skills.finish_fire(conn, added.id, "finished", {"text": "Well."}, at)
                    count += 1
                skills.change_skill(conn, skill.id, {"next_due": plan.next_due})
            return count

        began = time.process_time()
        fired += await database.write(fire)
        spent.append((time.process_time() - began) * 1000)
    await database.close()
    tenth = max(1, days // 10)
    report.figures |= {"year_check_ins": fired, "year_cpu_ms_a_day": median(spent)}
    report.ratios["year_last_days_to_first"] = median(spent[-tenth:]) / median(spent[tenth : 2 * tenth])
    report.within("check-ins missed in a year", 50 * days - fired, 0)
    report.within("time of the last days to the first", report.ratios["year_last_days_to_first"], 1.5)


if __name__ == "__main__":
    main()
