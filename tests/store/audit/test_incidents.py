"""What befalls an audit without anybody tampering with it is told in a sentence each, and it stays whole."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, timedelta

import pytest

from annabelle.core.home import Home
from annabelle.core.messages import now
from annabelle.store.audit.chain import AuditNote
from annabelle.store.audit.records import AuditPaths
from annabelle.store.audit.verification import verify_audit
from store.audit.conftest import chain_at
from support.timing import seconds

ON_A_SMALL_DISK = """
import resource, sys
from pathlib import Path
from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.store.audit import writer as writers
from annabelle.store.audit.chain import AuditChain, AuditLimits
from annabelle.store.audit.records import AuditPaths

writers._MOST_WAITING = 20
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
told = []
chain = AuditChain(AuditPaths.from_home(Home(Path(sys.argv[1]))), AuditLimits(), Redactor())
writer = writers.AuditWriter(chain, told.append)
writer.start()
resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, hard))
for number in range(100):
    writer.note("approval", {"event": "asked", "number": number})
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
writer.flush()
writer.stop()
print(told[0])
"""


def note(at: datetime) -> AuditNote:
    return AuditNote("tool", {"tool": "look", "outcome": "ok"}, at.isoformat(timespec="milliseconds"))


@pytest.mark.req("TRU-08")
def test_a_disk_that_was_really_full_leaves_it_whole_and_says_how_many_records_it_cost(
    home: Home, places: AuditPaths
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", ON_A_SMALL_DISK, str(home.root)],
        capture_output=True,
        text=True,
        timeout=seconds(60),
        check=True,
    )
    assert done.stdout.startswith("The audit can not be written: ")
    verdict = verify_audit(places)
    assert verdict.is_intact, verdict.problem
    (told,) = verdict.incidents
    lost = 100 - (verdict.records - 1)
    assert lost > 0
    assert f" says that {lost} records could not be written since " in told


@pytest.mark.req("TRU-08")
def test_a_clock_that_was_set_back_is_told_and_one_that_is_put_right_is_not(places: AuditPaths) -> None:
    chain, start = chain_at(places), now()
    moments = (start, start + timedelta(hours=3), start - timedelta(days=2), start - timedelta(days=2, seconds=2))
    chain.append([note(at) for at in moments])
    chain.close()
    verdict = verify_audit(places)
    assert verdict.is_intact
    assert verdict.incidents == ("Before record 3 the clock was set back by 2 d 3 h.",)


@pytest.mark.req("TRU-08")
def test_a_line_that_a_crash_tore_is_told_after_its_repair(ten: AuditPaths) -> None:
    with ten.active.open("ab") as file:
        file.write(b'{"at":"2026')
    chain_at(ten).close()
    verdict = verify_audit(ten)
    assert verdict.is_intact
    assert verdict.incidents == ("Before record 11 a crash tore a line: 11 bytes are in audit.torn.",)
