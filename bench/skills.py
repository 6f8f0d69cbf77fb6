"""Real SKILL.md files: how many are loaded, why others are refused, and what reading one costs beside bare YAML."""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import yaml

from annabelle.skills.skill_file import FILE_NAME, SkillMistake, parse_skill, read_skill
from annabelle.skills.skill_folder import SkillFolder, SkillPins
from measure import Report, median

ROUNDS = 20


def read_rows(folder: Path) -> list[dict[str, str]]:
    rows: list[dict[str, str]] = []
    for file in sorted(folder.glob("skills*.jsonl*")):
        text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
        rows += [json.loads(line) for line in text.decode().splitlines() if line.strip()]
    if not rows:
        raise SystemExit(f"No file in {folder} is called skills*.jsonl or skills*.jsonl.gz.")
    return rows


def milliseconds(action: Callable[[], object]) -> float:
    begin = time.process_time()
    for _ in range(ROUNDS):
        with contextlib.suppress(SkillMistake, yaml.YAMLError):
            action()
    return (time.process_time() - begin) * 1000 / ROUNDS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with skills*.jsonl or skills*.jsonl.gz")
    rows, report = read_rows(parser.parse_args().data), Report("skills")
    refused, ours, bare, warned = Counter[str](), list[float](), list[float](), 0
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        for number, row in enumerate(rows):
            # A collection each: two files may have the same name.
            folder = root / f"{number:04}" / Path(row["path"]).parent.name
            folder.mkdir(parents=True)
            (folder / FILE_NAME).write_bytes(row["text"].encode())
            header = row["text"].split("---", 2)[1] if row["text"].count("---") > 1 else ""
            try:
                warned += bool(read_skill(folder, root).warnings)
            except SkillMistake as mistake:
                refused[mistake.kind] += 1
                print(f"refused {row['path']}: {mistake}")
            ours.append(milliseconds(lambda text=row["text"], folder=folder: parse_skill(text, folder)))
            bare.append(milliseconds(lambda header=header: yaml.safe_load(header)))
        library = SkillFolder(root, SkillPins(root / "pins.json"))
        begin = time.process_time()
        library.skills()
        first = time.process_time() - begin
        again = median([_timed(library) for _ in range(ROUNDS)])
    loaded = len(rows) - refused.total()
    report.figures = {
        "files": float(len(rows)),
        "loaded": float(loaded),
        "refused": float(refused.total()),
        "with_warnings": float(warned),
        "parse_cpu_ms": median(ours),
        "slowest_parse_cpu_ms": max(ours),
        "bare_yaml_cpu_ms": median(bare),
        "first_look_cpu_ms": first * 1000,
        "next_look_cpu_ms": again * 1000,
        **{f"refused: {kind}": float(count) for kind, count in sorted(refused.items())},
    }
    report.ratios = {"parse_to_bare_yaml": sum(ours) / sum(bare), "next_look_to_first": again / first}
    report.within("one SKILL.md to bare YAML of its front matter", sum(ours) / sum(bare), 3.0)
    report.within("files that are neither loaded nor refused", len(rows) - loaded - refused.total(), 0)
    report.print()


def _timed(library: SkillFolder) -> float:
    begin = time.process_time()
    library.skills()
    return time.process_time() - begin


if __name__ == "__main__":
    main()
