"""Skills are fetched from folders, git repositories and archives without running or unpacking anything harmful."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from annabelle.skills import skill_source
from annabelle.skills.skill_file import SkillMistake
from annabelle.skills.skill_folder import hash_skill
from annabelle.skills.skill_source import FetchedSkill, fetch_skill
from skills.test_skill_folder import write

SKILL = b"---\nname: brew\ndescription: Makes tea.\n---\nBoil water.\n"


def fetch(source: Path | str, tmp_path: Path, name: str | None = None) -> FetchedSkill:
    staging = tmp_path / "staging"
    shutil.rmtree(staging, ignore_errors=True)
    staging.mkdir()
    return fetch_skill(str(source), staging, name)


def refusal(source: Path | str, tmp_path: Path, name: str | None = None) -> str:
    with pytest.raises(SkillMistake) as refused:
        fetch(source, tmp_path, name)
    return str(refused.value)


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.com")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def commit(folder: Path) -> None:
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")


@pytest.mark.req("BEY-04")
def test_a_folder_is_copied_with_its_files_and_described(tmp_path: Path) -> None:
    folder = write(tmp_path / "mine", "brew")
    (folder / "scripts").mkdir()
    (folder / "scripts" / "brew.py").write_text("print('tea')")
    (folder / "run").write_text("#!/bin/sh\necho tea\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("hidden")
    found = fetch(folder, tmp_path)
    assert found.skill.folder == tmp_path / "staging" / "brew"
    assert found.files == ["SKILL.md", "run", "scripts/brew.py"]
    assert found.scripts == ["run", "scripts/brew.py"]
    assert found.content_hash == hash_skill(found.skill.folder)
    assert found.size == sum((folder / file).stat().st_size for file in found.files)
    folder.rename(tmp_path / "mine" / "other")
    assert "its folder is 'other'" in refusal(tmp_path / "mine" / "other", tmp_path)


@pytest.mark.req("BEY-04")
def test_a_git_repository_is_cloned_at_its_newest_commit_without_its_hooks_and_submodules(tmp_path: Path) -> None:
    repository, other = tmp_path / "repository", tmp_path / "other"
    write(other, "roast")
    commit(other)
    write(repository / "skills" / ".curated", "brew")
    commit(repository)
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "-q", other.as_uri(), "module")
    git(repository, "commit", "-q", "-m", "a module")
    found = fetch(repository.as_uri(), tmp_path)
    assert found.skill.name == "brew"
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=repository, capture_output=True, text=True, check=True)
    assert found.origin == f"{repository.as_uri()}@{head.stdout.strip()}"
    assert list((tmp_path / "staging").iterdir()) == [tmp_path / "staging" / "brew"]


@pytest.mark.req("BEY-04")
def test_a_skill_at_the_top_of_a_repository_takes_the_name_it_gives_itself(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "SKILL.md").write_bytes(SKILL)
    commit(tmp_path / "work")
    git(tmp_path, "clone", "-q", "--bare", "work", "bare.git")
    assert fetch(tmp_path / "bare.git", tmp_path).skill.name == "brew"


@pytest.mark.req("BEY-04")
def test_of_several_skills_one_has_to_be_chosen(tmp_path: Path) -> None:
    for name in ("brew", "roast"):
        write(tmp_path / "collection" / "skills", name)
    assert refusal(tmp_path / "collection", tmp_path) == "it has several skills; choose one with --skill: brew, roast"
    assert fetch(tmp_path / "collection", tmp_path, "roast").skill.name == "roast"
    (tmp_path / "empty").mkdir()
    assert refusal(tmp_path / "empty", tmp_path) == "there is no SKILL.md in it"


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
@pytest.mark.parametrize(
    "address",
    ["ext::sh -c touch% pwned", "http://example.com/x.git", "git://example.com/x.git", "fd::17/foo",
     "https://me:secret@example.com/x.git", "--upload-pack=touch pwned"],
)  # fmt: skip
def test_addresses_that_run_programs_or_are_not_encrypted_are_refused(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = refusal(address, tmp_path)
    assert "secret" not in said
    assert not (tmp_path / "pwned").exists()


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
def test_settings_of_git_in_the_environment_are_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "repository", "brew")
    commit(tmp_path / "repository")
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "post-checkout").write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\n")
    (hooks / "post-checkout").chmod(0o755)
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(hooks))
    assert fetch((tmp_path / "repository").as_uri(), tmp_path).skill.name == "brew"
    assert not (tmp_path / "pwned").exists()


def tar(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


@pytest.mark.req("BEY-04")
@pytest.mark.parametrize("prefix", ["", "brew/", "collection/skills/brew/"])
def test_archives_are_unpacked_wherever_the_skill_lies_in_them(tmp_path: Path, prefix: str) -> None:
    packed = tar(tmp_path / "brew.tar.gz", (entry(f"{prefix}SKILL.md"), SKILL), (entry(f"{prefix}a/b.md"), b"B"))
    with zipfile.ZipFile(tmp_path / "brew.zip", "w") as archive:
        archive.writestr(f"{prefix}SKILL.md", SKILL)
        archive.writestr(f"{prefix}a/b.md", b"B")
    found = fetch(packed, tmp_path)
    assert found.files == ["SKILL.md", "a/b.md"]
    assert fetch(tmp_path / "brew.zip", tmp_path).content_hash == found.content_hash


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
@pytest.mark.parametrize("name", ["../evil.md", "/tmp/evil.md", "a/../../evil.md", "..\\evil.md", "C:evil.md"])
def test_a_name_that_leads_out_of_an_archive_is_refused(tmp_path: Path, name: str) -> None:
    said = refusal(tar(tmp_path / "x.tar.gz", (entry("SKILL.md"), SKILL), (entry(name), b"evil")), tmp_path)
    assert "would lie outside its folder" in said
    assert list(tmp_path.rglob("*evil*")) == []


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
@pytest.mark.parametrize(
    "member",
    [entry("x", tarfile.SYMTYPE, "/etc"), entry("x", tarfile.LNKTYPE, "SKILL.md"), entry("x", tarfile.FIFOTYPE),
     entry("x", tarfile.CHRTYPE)],
    ids=["symlink", "hardlink", "pipe", "device"],
)  # fmt: skip
def test_links_and_devices_in_an_archive_are_refused(tmp_path: Path, member: tarfile.TarInfo) -> None:
    packed = tar(tmp_path / "x.tar.gz", (entry("SKILL.md"), SKILL), (member, b""), (entry("x/passwd"), b"evil"))
    assert "is a link, or no file" in refusal(packed, tmp_path)


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
def test_a_link_in_a_zip_file_or_a_folder_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr("SKILL.md", SKILL)
        info = zipfile.ZipInfo("passwd")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    assert refusal(tmp_path / "x.zip", tmp_path) == "passwd in the archive is a link, or no file"
    folder = write(tmp_path / "mine", "brew")
    (folder / "passwd").symlink_to("/etc/passwd")
    assert refusal(folder, tmp_path) == "passwd is a link, or no file"


@pytest.mark.req("BEY-04")
@pytest.mark.incident("I-11")
def test_a_bomb_is_refused_before_it_fills_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skill_source, "_MOST_ARCHIVE_BYTES", 1_000_000)
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("SKILL.md", SKILL)
        for number in range(7):
            archive.writestr(f"{number}", bytes(200_000))
    assert "unpacks to more than" in refusal(tmp_path / "bomb.zip", tmp_path)
    # A header that claims gigabytes, of which only zeros follow.
    header = entry("x", tarfile.XHDTYPE)
    header.size = 10_000_000_000
    with gzip.open(tmp_path / "bomb.tar.gz", "wb", compresslevel=1) as file:
        file.write(header.tobuf(tarfile.GNU_FORMAT))
        for _ in range(14):
            file.write(bytes(200_000))
    assert "unpacks to more than" in refusal(tmp_path / "bomb.tar.gz", tmp_path)


@pytest.mark.req("BEY-04")
@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x05\x06" + bytes(18), b"\x1f\x8b broken", bytes(2_000)])
def test_a_damaged_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(content)
    assert refusal(tmp_path / "x.zip", tmp_path)


@pytest.mark.req("BEY-04")
def test_a_name_that_leads_elsewhere_makes_no_folder(tmp_path: Path) -> None:
    packed = tar(tmp_path / "x.tar.gz", (entry("SKILL.md"), SKILL.replace(b"brew", b"../brew")))
    assert "lowercase letters" in refusal(packed, tmp_path)
    assert os.listdir(tmp_path / "staging") == [".source"]
