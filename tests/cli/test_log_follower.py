"""What is added to a log is read once, in whole lines, across its rotation."""

from __future__ import annotations

from pathlib import Path

from annabelle.core.log_tail import LogFollower


def test_only_whole_new_lines_are_given_once(tmp_path: Path):
    path = tmp_path / "hub.log"
    path.write_text("old\n")
    follower = LogFollower(path)
    assert follower.new_lines() == []
    with path.open("a") as log:
        log.write("one\ntw")
    assert follower.new_lines() == ["one"]
    with path.open("a") as log:
        log.write("o\n")
    assert follower.new_lines() == ["two"]
    assert follower.new_lines() == []


def test_a_file_that_does_not_exist_yet_is_waited_for(tmp_path: Path):
    follower = LogFollower(tmp_path / "hub.log")
    assert follower.new_lines() == []
    (tmp_path / "hub.log").write_text("first\n")
    assert follower.new_lines() == ["first"]


def test_a_rotated_file_is_followed_into_its_successor(tmp_path: Path):
    path = tmp_path / "hub.log"
    path.write_text("old\n" * 10)
    follower = LogFollower(path)
    path.rename(tmp_path / "hub.log.1")
    path.write_text("new\n")
    assert follower.new_lines() == ["new"]
    path.write_text("x\n")
    assert follower.new_lines() == ["x"]


def test_another_follower_goes_on_where_the_first_one_was(tmp_path: Path):
    path = tmp_path / "hub.log"
    path.write_text("old\n")
    position = LogFollower(path).position
    with path.open("a") as log:
        log.write("new\n")
    later = LogFollower(path, position)
    assert later.new_lines() == ["new"]
    assert LogFollower(path, later.position).new_lines() == []
    assert LogFollower(path, "nonsense").new_lines() == []
