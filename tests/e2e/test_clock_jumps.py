"""The wall clock jumps by years while Annabelle runs: a small library between the processes and the clock does it."""

from __future__ import annotations

import struct
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from e2e.days import MakeHub, plan, reply
from hub.hubs import HubProcess, wait_for
from support import timing
from support.few_servers import only
from support.scripted_model import Reply, Rule, ScriptedServer

SOURCE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
static int (*real)(clockid_t, struct timespec *);
static volatile long *offset;
int clock_gettime(clockid_t which, struct timespec *now) {
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    if (!offset) offset = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, open(getenv("CLOCK_OFFSET_FILE"), O_RDONLY), 0);
    int result = real(which, now);
    if (which == CLOCK_REALTIME) now->tv_sec += *offset;
    return result;
}
"""
DAY = 86_400


class Clock:
    """The wall clock of one hub. Its children are not given the library, so their clock stays: two that disagree."""

    def __init__(self, folder: Path) -> None:
        self._offset = folder / "offset"
        self._offset.touch()
        self.set(0)
        library = folder / "clock.so"
        (folder / "clock.c").write_text(SOURCE)
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(folder / "clock.c"), "-ldl"]
        subprocess.run(command, check=True)
        self.environment = {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": str(self._offset)}

    def set(self, seconds: int) -> None:
        with self._offset.open("r+b") as file:  # the hub has this very file in its memory
            file.write(struct.pack("@l", seconds))


def said_at(hub: HubProcess, answer: dict[str, object]) -> datetime:
    listed = hub.http.get(f"/threads/{answer['threadId']}/messages").json()["messages"]
    return datetime.fromisoformat(listed[-1]["createdAt"])


@pytest.mark.req("DUR-01", "DUR-04")
def test_a_clock_that_jumps_by_years_loses_doubles_and_delays_nothing(
    make_hub: MakeHub, rules: ScriptedServer, tmp_path: Path
) -> None:
    clock = Clock(tmp_path)
    hub = make_hub(ANNABELLE_RATE_LIMIT_PER_MINUTE="600", **only("filer"), **clock.environment).start()
    said = ["at first"]
    assert reply(hub.say(plan(said[0]), externalId="once")) == said[0]
    for offset, words in ((+1000 * DAY, "in years"), (-1000 * DAY, "years ago"), (0, "today again")):
        clock.set(offset)
        answer = hub.say(plan(words, ("filer_list_grants", {})))
        said.append(words)
        assert reply(answer) == words
        assert abs(said_at(hub, answer) - datetime.now(UTC) - timedelta(seconds=offset)) < timedelta(hours=1)

    rules.rules(Rule(match="slowly", reply=Reply(text="one two three four", chunks=4, chunk_delay=0.2)))
    begun = hub.http.post("/message", json={"text": "slowly"}).json()
    wait_for(lambda: rules.requests, "the model to be asked")
    clock.set(-2000 * DAY)
    found = hub.http.get(f"/messages/{begun['messageId']}", params={"wait": timing.seconds(60)}).json()
    assert (found["state"], reply(found)) == ("done", "one two three four")
    assert hub.stop() == 0

    hub.start()  # the clock is still years behind what is on record
    again = hub.say(plan("never said"), externalId="once")
    assert (again["duplicate"], reply(again)) == (True, "at first")
    assert reply(hub.say(plan("at last"))) == "at last"
    listed = hub.http.get(f"/threads/{again['threadId']}/messages").json()["messages"]
    told = [line["text"] for line in listed if (line["source"], line["type"]) == ("agent", "text")]
    assert told == [*said, "one two three four", "at last"]
    events = hub.http.get(f"/messages/{again['messageId']}/events").json()["events"]
    assert [event["type"] for event in events].count("done") == 1
