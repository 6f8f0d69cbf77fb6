"""A backup is the whole home or no backup; a restore is all of it or nothing; secrets are only in it encrypted."""

from __future__ import annotations

import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from sqlalchemy import text

from annabelle.core.errors import AlreadyRunning, AnnabelleError, CallerMistake, Conflict, NotAllowed, StorageTrouble
from annabelle.core.failpoints import VARIABLE
from annabelle.core.home import Home
from annabelle.core.settings import load_settings
from annabelle.store import home_archive, home_backup, home_restore
from annabelle.store.database import Database, sqlite_url
from annabelle.store.file_lock import FileLock
from annabelle.store.home_archive import ArchiveManifest, ArchiveWriter
from annabelle.store.home_backup import BackupReport, back_up_home
from annabelle.store.home_restore import RestoreReport, restore_home
from annabelle.store.memory.tables import MEMORY_PLAN

PASSPHRASE = "correct horse battery staple"
SECRETS = {
    "annabelle.token": "tok-Tassibel4406Ruondo",
    "connections/mail.json": '{"password": "Umbrecht 3371 quail?"}',
    "config/external-mcps.json": '{"mcpServers": {"x": {"args": ["--api-key", "Ostrava_6640_minnow"]}}}',
    "config/settings.env": "USER_NAME=Ada\nOPENAI_API_KEY=kelmarsh-9917-Prouvet\n# OLD_TOKEN=Gristane_5528_Wolfe\n"
    "SEARXNG_URL=http://ada:Fennimore-8812@search.example\nUSER_TIMEZONE=Europe/Berlin\n",
    "data/audit.key": "Quillon2295tarn",
    "logs/audit.jsonl": '{"n": 1}\n',
    "data/browser/annabelle/Cookies": "sid=Wolverstone-7781",
    "config/notes.toml": 'api_key = "sk-proj-AbCdEfGhIjKlMnOpQrStUvWxYz0123456789"\n',
}
HIDDEN = ("Tassibel", "Umbrecht", "Ostrava", "kelmarsh", "Gristane", "Fennimore", "Quillon", "Wolverstone", "sk-proj")
FILES = {
    "workspace/Über uns.txt": "wir" * 1000,
    "workspace/poetry.lock": "pinned",
    "agents/annabelle/instructions.md": "Be kind.",
    "skills/tidy/SKILL.md": "---\nname: tidy\n---\nTidy up.",
    "skills/offered.json": "[]",
    "data/pinned-skills.json": "{}",
    "playbooks/mine.md": "Mine.",
    "config/agents.json": '{"agents": []}',
    "logs/traces.jsonl": '{"n": 1}\n',
    "run/history": "what I typed",
    "README.md": "guide",
}
PASSING = {
    "logs/hub.log": "noise",
    "run/hub.json": "{}",
    "models/mind.gguf": "weights",
    "backups/memory-1.db": "old",
    "data/embeddings/x": "vector",
    "data/browser/annabelle/Code Cache/y": "cache",
    "data/codexec/env/pyvenv.cfg": "home = /usr",
    "data/codexec/env/lib.py": "x = 1",
}

WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30)
for number in range(1, 1_000_000):
    connection.execute("INSERT INTO pairs VALUES (?, 0)", (number,))
    connection.execute("UPDATE pairs SET b = a WHERE b <> a")
    connection.commit()
    print(number, flush=True) if number == 1 else None
"""


def write_files(home: Home, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = home.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def read_files(home: Home) -> dict[str, bytes]:
    return {
        str(path.relative_to(home.root)): path.read_bytes()
        for path in home.root.rglob("*")
        if path.is_file() and path.parent != home.run
    }


@pytest.fixture(scope="module", autouse=True)
def keys_derived_once() -> Iterator[None]:
    """Each passphrase and salt give one key, and deriving it is slow on purpose."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(home_archive, "_derive_key", cache(home_archive._derive_key))  # pyright: ignore[reportPrivateUsage]
        yield


@pytest.fixture
async def lived_in(home: Home) -> Home:
    """A home with databases, files and secrets."""
    for file, plan in ((home.database_file, None), (home.memory_file, MEMORY_PLAN)):
        database = await Database.open(sqlite_url(file), **({"plan": plan} if plan else {}))
        await database.close()
    write_files(home, {**FILES, **SECRETS, **PASSING})
    return home


def back_up(home: Home, target: Path, passphrase: str | None = PASSPHRASE, *, force: bool = False) -> BackupReport:
    return back_up_home(
        home, target, load_settings(home), passphrase=passphrase, force=force, progress=lambda _done, _all: None
    )


def restore(
    home: Home, file: Path, passphrase: str | None = PASSPHRASE, *, secrets: bool = True, force: bool = False
) -> RestoreReport:
    return restore_home(
        home, file, passphrase=passphrase, secrets=secrets, force=force, progress=lambda _done, _all: None
    )


def beside(path: Path) -> list[str]:
    return sorted(one.name for one in path.parent.iterdir())


@pytest.mark.req("BEY-06")
def test_everything_but_models_caches_and_logs_comes_back(lived_in: Home, tmp_path: Path) -> None:
    os.utime(lived_in.workspace / "poetry.lock", (1_700_000_000, 1_700_000_000))
    (lived_in.workspace / "poetry.lock").chmod(0o755)
    file, new = tmp_path / "b" / "all.backup", Home(tmp_path / "new" / "home")
    report = back_up(lived_in, file)
    assert (report.secrets, report.left_out) == (len(SECRETS), [])
    assert (beside(file), file.stat().st_mode & 0o777) == (["all.backup"], 0o600)

    done = restore(new, file)

    found = read_files(new)
    databases = {"data/annabelle.db", "data/memory.db"}
    assert {name: found[name].decode() for name in found.keys() - databases} == {
        name: content for name, content in {**FILES, **SECRETS}.items() if not name.startswith("run/")
    }
    assert databases < found.keys()
    assert new.history_file.read_text() == "what I typed"
    kept = (new.workspace / "poetry.lock").stat()
    assert (kept.st_mtime, kept.st_mode & 0o777) == (1_700_000_000, 0o755)
    assert (done.replaced, done.secrets) == ([], len(SECRETS))
    assert (beside(new.root), new.root.stat().st_mode & 0o777) == (["home"], 0o700)


@pytest.mark.req("BEY-06")
def test_secrets_are_absent_without_a_passphrase_and_unreadable_with_one(lived_in: Home, tmp_path: Path) -> None:
    killed_amid_a_write = lived_in.root / f".{lived_in.token_file.name}.4711.0a1b2c3d"
    killed_amid_a_write.write_text(lived_in.token_file.read_text())
    for name, passphrase in (("open", None), ("sealed", PASSPHRASE)):
        file, folder = tmp_path / name, tmp_path / f"{name}-unzipped"
        report = back_up(lived_in, file, passphrase)
        assert report.secrets == (None if passphrase is None else len(SECRETS))
        with zipfile.ZipFile(file) as archive:
            archive.extractall(folder)
        everything = file.read_bytes() + b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
        assert [secret for secret in HIDDEN if secret.encode() in everything] == []
        assert (folder / "home/config/settings.env").read_text() == "USER_NAME=Ada\nUSER_TIMEZONE=Europe/Berlin\n"
        new = Home(tmp_path / f"{name}-home")
        restore(new, file, None, secrets=False)
        assert read_files(new).keys() & SECRETS.keys() == {"config/settings.env"}


@pytest.mark.req("BEY-06")
def test_a_wrong_passphrase_or_none_changes_nothing(lived_in: Home, tmp_path: Path) -> None:
    file, new = tmp_path / "all.backup", Home(tmp_path / "new")
    back_up(lived_in, file)
    before = read_files(lived_in)
    for passphrase in ("wrong", "", None):
        for target in (new, lived_in):
            with pytest.raises(NotAllowed, match="passphrase"):
                restore(target, file, passphrase, force=True)
    assert not new.root.exists()
    assert read_files(lived_in) == before


@pytest.mark.req("BEY-06")
def test_what_is_there_is_neither_overwritten_nor_replaced_unasked(lived_in: Home, tmp_path: Path) -> None:
    file = tmp_path / "all.backup"
    file.write_text("mine")
    with pytest.raises(Conflict):
        back_up(lived_in, file)
    assert file.read_text() == "mine"
    back_up(lived_in, file, force=True)
    (lived_in.workspace / "later.txt").write_text("later")
    with pytest.raises(Conflict):
        restore(lived_in, file)
    lock = FileLock(lived_in.hub_file)
    lock.acquire()
    with pytest.raises(AlreadyRunning, match="runs"):
        restore(lived_in, file, force=True)
    lock.release()
    assert (lived_in.workspace / "later.txt").exists()

    (kept,) = restore(lived_in, file, force=True).replaced

    assert (Path(kept) / "workspace" / "later.txt").read_text() == "later"
    assert Path(kept).parent == lived_in.backups
    assert not (lived_in.workspace / "later.txt").exists()
    assert (lived_in.models / "mind.gguf").read_text() == "weights"
    assert (lived_in.backups / "memory-1.db").read_text() == "old"


@pytest.mark.req("BEY-06")
def test_a_database_is_copied_whole_while_it_is_written(lived_in: Home, tmp_path: Path) -> None:
    with closing(sqlite3.connect(lived_in.database_file)) as connection:
        connection.execute("CREATE TABLE pairs (a INTEGER, b INTEGER)")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(lived_in.database_file)], stdout=subprocess.PIPE)
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        counts: list[int] = []
        for round_number in range(4):
            file, new = tmp_path / f"{round_number}.backup", Home(tmp_path / f"home-{round_number}")
            back_up(lived_in, file, None)
            restore(new, file)
            with closing(sqlite3.connect(new.database_file)) as connection:
                assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                query = "SELECT count(*), max(a), sum(a <> b) FROM pairs"
                count, most, unequal = connection.execute(query).fetchone()
                assert (count, unequal) == (most, 0)
                counts.append(count)
        assert counts == sorted(set(counts)), "it was written all the time"
    finally:
        writer.kill()
        writer.communicate()


def killed(work: Callable[[], object]) -> bool:
    """Whether the work is killed by its failpoint, in a process of its own."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(status := os.waitpid(pid, 0)[1]) and os.WTERMSIG(status) == signal.SIGKILL


@pytest.fixture
def armed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "failpoints"
    folder.mkdir()
    monkeypatch.setenv(VARIABLE, str(folder))
    return folder


@pytest.mark.req("BEY-06")
@pytest.mark.parametrize("point", home_backup.FAILPOINTS)
def test_a_backup_killed_at_any_moment_leaves_the_file_that_was_there(
    lived_in: Home, tmp_path: Path, armed: Path, point: str
) -> None:
    file = tmp_path / "out" / "all.backup"
    file.parent.mkdir()
    file.write_text("the one before")
    (armed / point).touch()
    assert killed(lambda: back_up(lived_in, file, force=True))
    assert file.read_text() == "the one before"
    another = file.with_name("another.backup")
    back_up(lived_in, another)
    assert beside(file) == ["all.backup", "another.backup"], "what the killed one left is gone"
    restore(Home(tmp_path / "new"), another)


@pytest.mark.req("BEY-06")
@pytest.mark.parametrize("there", [True, False], ids=["over a home", "where nothing is"])
@pytest.mark.parametrize("point", home_restore.FAILPOINTS)
def test_a_restore_killed_at_any_moment_leaves_the_old_home_or_the_new_one(
    lived_in: Home, tmp_path: Path, armed: Path, point: str, there: bool
) -> None:
    file, new = tmp_path / "all.backup", Home(tmp_path / "place" / "home")
    back_up(lived_in, file)
    wanted = {name for name in {**FILES, **SECRETS} if not name.startswith("run/")}
    if there:
        write_files(new, {"workspace/mine.txt": "mine"})
    (armed / point).touch()
    was_killed = killed(lambda: restore(new, file, force=True))
    (armed / point).unlink(missing_ok=True)
    assert was_killed or (point == home_restore.FAILPOINTS[4] and not there), "nothing was there to set aside"
    found = read_files(new).keys() if new.root.exists() else set()
    assert found == ({"workspace/mine.txt"} if there else set()) or wanted <= found
    done = restore(new, file, force=True)
    assert wanted <= read_files(new).keys()
    if there:
        everywhere = [path.read_text() for path in new.root.parent.rglob("mine.txt")]
        assert everywhere == ["mine"], "the old home is kept once"
        assert not there or done.replaced
    assert not [name for name in beside(new.root) if name.endswith(".part")]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a small backup with secrets."""
    home = Home(tmp_path_factory.mktemp("whole") / "home")
    write_files(home, {**FILES, **SECRETS})
    file = home.root.parent / "all.backup"
    back_up(home, file)
    return file.read_bytes()


@pytest.fixture(scope="module")
def intact(whole: bytes, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("intact")
    (folder / "all.backup").write_bytes(whole)
    restore(Home(folder / "home"), folder / "all.backup")
    return read_files(Home(folder / "home"))


class Attempts:
    """Restores changed backups, each into a place of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._count = folder, 0
        self.sentences: set[str] = set()

    def __call__(self, content: bytes, passphrase: str | None = PASSPHRASE) -> dict[str, bytes] | None:
        """What was restored; None if it was refused in a sentence, and then nothing is left."""
        self._count += 1
        folder = self._folder / str(self._count)
        folder.mkdir()
        (folder / "file").write_bytes(content)
        home = Home(folder / "home")
        try:
            restore(home, folder / "file", passphrase, secrets=passphrase is not None)
        except AnnabelleError as error:
            self.sentences.add(error.message)
            assert beside(folder / "file") == ["file"]
            return None
        return read_files(home)


@pytest.fixture
def attempt(tmp_path: Path) -> Attempts:
    return Attempts(tmp_path)


ONE_FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=150)


@pytest.mark.req("BEY-06")
@given(share=st.floats(0, 1, exclude_max=True))
@ONE_FIXTURE
def test_a_backup_that_was_cut_off_is_refused(attempt: Attempts, whole: bytes, share: float) -> None:
    assert attempt(whole[: int(len(whole) * share)]) is None


@pytest.mark.req("BEY-06")
@given(data=st.data(), passphrase=st.sampled_from([PASSPHRASE, None]))
@ONE_FIXTURE
def test_flipped_bytes_are_refused_or_make_no_difference(
    attempt: Attempts, whole: bytes, intact: dict[str, bytes], data: st.DataObject, passphrase: str | None
) -> None:
    content = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    found = attempt(bytes(content), passphrase)
    if found is not None:
        public = {name: intact[name] for name in intact.keys() - SECRETS.keys()}
        assert {name: found[name] for name in found.keys() - SECRETS.keys()} == public
        assert passphrase is None or found == intact


@pytest.mark.req("BEY-06")
@given(content=st.binary(max_size=2000))
@ONE_FIXTURE
def test_something_else_is_no_backup(attempt: Attempts, content: bytes) -> None:
    assert attempt(content) is None


def craft(file: Path, change: Callable[[dict[str, object]], object], **members: bytes) -> None:
    """A backup with one file that somebody changed by hand, with every hash right."""
    writer = ArchiveWriter(file, ArchiveManifest(), None)
    writer.add("home/a.txt", [b"hello"])
    writer.finish()
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(content["manifest.json"])
    change(manifest)
    content |= {"manifest.json": json.dumps(manifest).encode(), **members}
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, blob in content.items():
            archive.writestr(name, blob)


@pytest.mark.req("BEY-06")
@pytest.mark.parametrize(
    "path",
    [
        "home/../../evil",
        "home//etc/evil",
        "home/./x",
        "/etc/evil",
        "home/x\0y",
        "home/a.txt/b",
        "",
        "home/" + "x" * 300,
    ],
)
def test_no_path_leads_out_of_the_home(tmp_path: Path, path: str) -> None:
    file, folder = tmp_path / "crafted", tmp_path / "in" / "here"
    folder.mkdir(parents=True)
    craft(file, lambda manifest: manifest["entries"].append({**manifest["entries"][0], "path": path}))  # type: ignore[index,attr-defined]
    with pytest.raises(AnnabelleError) as refused:
        restore(Home(folder / "home"), file)
    assert refused.value.message.endswith(".")
    assert [*(tmp_path / "in").rglob("*")] == [folder]


@pytest.mark.req("BEY-06")
def test_an_entry_that_unpacks_to_more_than_it_says_is_refused(tmp_path: Path) -> None:
    file, home = tmp_path / "bomb", Home(tmp_path / "new")
    craft(file, lambda _manifest: None, **{"home/a.txt": b"\0" * 50_000_000})
    written: list[int] = []
    with pytest.raises(CallerMistake, match="not a whole backup"):
        restore_home(
            home, file, passphrase=None, secrets=True, force=False, progress=lambda done, _all: written.append(done)
        )
    assert written == []
    file.unlink()
    craft(file, lambda manifest: manifest["entries"][0].update(size=1 << 60))  # type: ignore[index]
    with pytest.raises(StorageTrouble, match="needs"):
        restore(home, file)
    assert not home.root.exists()


@pytest.mark.req("BEY-06")
@pytest.mark.parametrize(
    "newer",
    [{"format_version": 2}, {"format_version": 2, "entries": 1}, {"annabelle": "99.0"}, {"revisions": {"hub": "9"}}],
)
def test_a_backup_of_a_newer_version_is_not_restored(tmp_path: Path, newer: dict[str, object]) -> None:
    craft(tmp_path / "newer", lambda manifest: manifest.update(newer))
    with pytest.raises(CallerMistake, match="newer"):
        restore(Home(tmp_path / "new"), tmp_path / "newer")
    assert not (tmp_path / "new").exists()


@pytest.mark.req("BEY-06")
def test_what_can_not_be_in_it_is_named(lived_in: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outside = tmp_path / "my files"
    outside.mkdir()
    monkeypatch.setenv("WORKSPACE_PATH", str(outside))
    (lived_in.root / "link").symlink_to(outside)
    report = back_up(lived_in, tmp_path / "all.backup")
    assert report.left_out == [repr(str(lived_in.root / "link")), f"WORKSPACE_PATH: {outside}"]


@pytest.mark.req("BEY-06")
async def test_rows_on_postgresql_come_back_as_they_were(
    lived_in: Home, tmp_path: Path, postgres_tables_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = "user_id, agent_id, fact, fact_hash, category, source, confidence, trust, origin, valid_from, created_at,"
    values = "'ada', 'annabelle', {fact}, 'h', 'background', 'chat', 0.1, 'trusted', '{{}}', {now}, {now}, {now}"
    now = "now()"
    hub = await Database.open(postgres_tables_url)
    said = "'Zoë said \"hi\\n\" ' || chr(10) || chr(127)"
    for number in (1, 2):
        row = values.format(fact=f"{said} || '{number}'", now=now)
        await hub.write(lambda c, row=row: c.execute(text(f"INSERT INTO facts ({columns} updated_at) VALUES ({row})")))
    vector = "INSERT INTO vectors VALUES ('fact', 1, 'ada', 'annabelle', 'm', 3, '\\x00ff10'::bytea)"
    await hub.write(lambda c: c.execute(text(vector)))
    await hub.write(lambda c: c.execute(text("UPDATE facts SET superseded_by = 2 WHERE id = 1")))
    everything = "SELECT f.*, v.vector FROM facts f LEFT JOIN vectors v ON v.row_id = f.id ORDER BY f.id"
    before = await hub.read(lambda c: [tuple(row) for row in c.execute(text(everything))])
    await hub.close()
    monkeypatch.setenv("DATABASE_URL", postgres_tables_url)
    file = tmp_path / "all.backup"
    assert back_up(lived_in, file).tables > 10

    monkeypatch.setenv("DATABASE_URL", postgres_url)
    restore(Home(tmp_path / "new"), file)

    restored = await Database.open(postgres_url)
    row = values.format(fact="'new'", now=now)
    added = await restored.write(
        lambda c: c.scalar(text(f"INSERT INTO facts ({columns} updated_at) VALUES ({row}) RETURNING id"))
    )
    after = await restored.read(lambda c: [tuple(row) for row in c.execute(text(everything))])
    await restored.close()
    assert (after[:2], added) == (before, 3)
    with pytest.raises(Conflict, match="in use"):
        restore(Home(tmp_path / "another"), file)
    assert not (tmp_path / "another").exists()


@pytest.mark.req("BEY-06")
def test_a_full_disk_is_one_sentence_and_leaves_everything_as_it_was(lived_in: Home, tmp_path: Path) -> None:
    file, crowded = tmp_path / "all.backup", Home(tmp_path / "crowded" / "home")
    (lived_in.workspace / "large").write_bytes(os.urandom(5_000_000))
    back_up(lived_in, file)
    write_files(crowded, {"workspace/mine.txt": "mine"})
    before = file.read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # The kernel refuses every byte behind the first three million of a file.
    resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, hard))
    try:
        for work in (lambda: back_up(lived_in, file, force=True), lambda: restore(crowded, file, force=True)):
            with pytest.raises(StorageTrouble, match=r"^The backup .*\.$"):
                work()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.read_bytes() == before
    assert read_files(crowded) == {"workspace/mine.txt": b"mine"}
    assert (beside(crowded.root), [name for name in beside(file) if name.endswith(".part")]) == (["home"], [])
