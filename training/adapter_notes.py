"""Writes what the package knows about its adapter: the weights it is for, and what phrases give without saying it.

`PYTHONPATH=. python -m training.adapter_notes`, after an adapter was made or phrases have changed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from training.data import load_book, load_schemas
from training.sentences import typed_value

from annabelle.core.tools import JsonObject
from annabelle.language.phrases import MEANS, NAMED, NTH, SLOT, PhraseBook, Sentence, ToolPhraseFile
from annabelle.llm.embedded.adapter import ABOUT, ADAPTER, fingerprint, hash_file
from annabelle.llm.embedded.reply import split_value
from annabelle.llm.gguf_models import find_packaged_weights


def given_values(book: PhraseBook, schemas: dict[str, JsonObject]) -> JsonObject:
    """For each argument the values that are meant, each with the words that mean it, and the words around slots."""
    values: dict[str, dict[str, dict[str, set[str]]]] = defaultdict(lambda: defaultdict(lambda: defaultdict(set)))
    words: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for file in book.files:
        for tool, told in file.tools.items():
            properties: dict[str, JsonObject] = schemas[tool].get("properties") or {}  # type: ignore[assignment]
            for phrase in (*told.phrases, *(entry.say for entry in told.follow_ups)):
                for argument, said, value in _unsaid(book, file, Sentence.parse(phrase)):
                    if argument not in properties:
                        continue
                    if SLOT.search(value):
                        words[tool][argument].update(split_value(SLOT.sub(" ", value)))
                    else:
                        meant = json.dumps(typed_value(value, properties[argument]), ensure_ascii=False)
                        values[tool][argument][meant].add(" ".join(split_value(SLOT.sub(" ", said))))
    return {
        tool: {
            argument: {
                "values": {value: sorted(said) for value, said in sorted(values[tool][argument].items())},
                "words": sorted(words[tool][argument]),
            }
            for argument in sorted({*values[tool], *words[tool]})
        }
        for tool in sorted({*values, *words})
    }


def _unsaid(book: PhraseBook, file: ToolPhraseFile, sentence: Sentence) -> Iterator[tuple[str, str, str]]:
    """Arguments, what is said for them, and what that means. A whole phrase may mean a value without any word of it."""
    for argument, value in sentence.given.items():
        yield argument, "", value
    for argument, kind in sentence.slots():
        for entry in () if kind in (NTH, NAMED) else book.values(file, kind):
            said, arrow, value = entry.partition(MEANS)
            if arrow:
                yield argument, said, value


def main() -> None:
    weights = find_packaged_weights()
    if weights is None:
        raise SystemExit("The packaged weights are not installed: run make test once.")
    about = {
        "weights": fingerprint(weights),
        "adapter": hash_file(ADAPTER),
        "given": given_values(load_book(), load_schemas()),
    }
    ABOUT.write_text(json.dumps(about, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
