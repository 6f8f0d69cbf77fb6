"""Prepares the training of the packaged mind, and packs what it made (FST-04).

`python -m training.adapter_data prepare FOLDER` writes what `adapter.py` needs on a machine with a GPU: token ids of
all prompts and answers, and the bytes of the packaged weights. `python -m training.adapter_data pack FOLDER` makes
`adapter.gguf` of what came back. Both need `gguf` and `tokenizers`, which nothing else in the project does.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import gguf
import numpy as np
from jsonschema import Draft202012Validator
from numpy.typing import NDArray
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from training.data import load_book, load_schemas
from training.sentences import Row, SentenceMaker

from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.language.tool_odds import NO_TOOL, ToolOdds, packaged_tool_odds
from annabelle.llm.embedded.adapter import ADAPTER
from annabelle.llm.embedded.packaged_mind import SYSTEM, format_signature, write_call, write_earlier
from annabelle.llm.gguf_models import find_packaged_weights

RANK, SCALE = 16, 2.0
OFFERED = (1, 1, 1, 2, 3, 3, 4, 5, 7, 9)
"""How many tools a prompt offers: mostly as few as the selection does."""
CALL_UNKNOWN = 0.1
"""How often the earlier call is left out, as when an answer was given without one."""
_END = "<|im_end|>"
_CONTROL_TOKEN = 3
_LARGEST_PART = 32_000_000


class PromptMaker:
    """Asks as `packaged_mind.py` does: the tools that the selection offers, the last exchange, the message."""

    def __init__(self, schemas: dict[str, JsonObject], odds: ToolOdds, seed: int = 0) -> None:
        self._draw, self._odds = random.Random(seed), odds
        self._signatures = {
            name: format_signature(
                ToolSpec(name=name, server="", original_name=name, description="", input_schema=schema)
            )
            for name, schema in schemas.items()
        }

    def prompt(self, row: Row) -> str:
        parts = [f"<|im_start|>system\n{SYSTEM}{self._offer(row)}{_END}\n"]
        if row.before is not None:
            call = write_call(row.before.tool, row.before.arguments)
            told = write_earlier(call if self._draw.random() > CALL_UNKNOWN else None, row.before.answer)
            parts += [_said("user", row.before.user), _said("assistant", told)]
        return "".join([*parts, _said("user", row.user), "<|im_start|>assistant\n"])

    def _offer(self, row: Row) -> str:
        odds = self._odds(row.user, "" if row.before is None else row.before.tool)
        ranked = [name for name in sorted(odds, key=odds.__getitem__, reverse=True) if name != NO_TOOL]
        names = ranked[: self._draw.choice(OFFERED)]
        if row.tool is not None and row.tool not in names:
            names[-1:] = [row.tool]  # also where the odds say nothing, as for unknown words
        self._draw.shuffle(names)
        return "\n".join(self._signatures[name] for name in names)


def _said(who: str, text: str) -> str:
    return f"<|im_start|>{who}\n{text}{_END}\n"


def make_rows(schemas: dict[str, JsonObject]) -> Iterator[Row]:
    """Every sentence once, and only calls that fit their tool."""
    validators = {name: Draft202012Validator(schema) for name, schema in schemas.items()}
    seen: set[tuple[str, str]] = set()
    for row in SentenceMaker(load_book(), schemas, seed=1).rows():
        key = row.user, "" if row.before is None else row.before.user
        if key not in seen and (row.tool is None or validators[row.tool].is_valid(row.arguments)):
            seen.add(key)
            yield row


def write_answer(row: Row) -> str:
    return row.answer if row.tool is None else write_call(row.tool, row.arguments)


def read_tokenizer(reader: gguf.GGUFReader) -> Tokenizer:
    """The tokenizer of the packaged weights, from the fields of their file."""

    def get(name: str) -> list:
        return reader.fields[f"tokenizer.ggml.{name}"].contents()

    words = get("tokens")
    vocabulary = {word: number for number, word in enumerate(words)}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[tuple(pair.split(" ", 1)) for pair in get("merges")]))
    bytes_ = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), bytes_])
    tokenizer.decoder = decoders.ByteLevel()
    kinds = zip(words, get("token_type"), strict=True)
    tokenizer.add_special_tokens([AddedToken(word, special=True) for word, kind in kinds if kind == _CONTROL_TOKEN])
    return tokenizer


def read_weights(reader: gguf.GGUFReader) -> dict[str, NDArray[np.uint8]]:
    """The bytes of every tensor as they are, under its name, kind and shape."""
    return {
        f"{tensor.name}|{tensor.tensor_type.name}|{'x'.join(str(int(side)) for side in reversed(tensor.shape))}": (
            np.frombuffer(tensor.data.tobytes(), np.uint8)
        )
        for tensor in reader.tensors
    }


def split(weights: dict[str, NDArray[np.uint8]]) -> list[dict[str, NDArray[np.uint8]]]:
    """In parts that can travel one by one."""
    parts: list[dict[str, NDArray[np.uint8]]] = [{}]
    for name, tensor in weights.items():
        if parts[-1] and sum(other.nbytes for other in parts[-1].values()) + tensor.nbytes > _LARGEST_PART:
            parts.append({})
        parts[-1][name] = tensor
    return parts


def prepare(folder: Path, most: int | None = None) -> None:
    """`most`: only so many rows, to try whether everything works."""
    weights, odds = find_packaged_weights(), packaged_tool_odds()
    if weights is None or odds is None:
        raise SystemExit("The packaged weights or those of the selection are missing: run make test once.")
    folder.mkdir(parents=True, exist_ok=True)
    reader, schemas = gguf.GGUFReader(weights), load_schemas()
    tokenizer, prompts, rows = (
        read_tokenizer(reader),
        PromptMaker(schemas, odds),
        list(islice(make_rows(schemas), most)),
    )
    end = tokenizer.token_to_id(_END)
    asked = tokenizer.encode_batch([prompts.prompt(row) for row in rows], add_special_tokens=False)
    answered = tokenizer.encode_batch([write_answer(row) for row in rows], add_special_tokens=False)
    pairs = [(one.ids, [*other.ids, end]) for one, other in zip(asked, answered, strict=True)]
    np.savez_compressed(
        folder / "rows.npz",
        tokens=np.concatenate([np.array([*prompt, *answer], np.uint16) for prompt, answer in pairs]),
        lengths=np.array([(len(prompt), len(answer)) for prompt, answer in pairs], np.uint16),
        end=end,
    )
    for old in folder.glob("weights-*.npz"):
        old.unlink()
    for number, part in enumerate(split(read_weights(reader))):
        np.savez(folder / f"weights-{number}.npz", **part)
    print(f"{len(pairs)} rows; copy {folder} and training/adapter.py to the GPU", file=sys.stderr)


def pack(folder: Path) -> None:
    trained = np.load(folder / "adapter.npz")
    writer = gguf.GGUFWriter(ADAPTER, "llama")
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", SCALE * RANK)
    for name in sorted(trained):
        writer.add_tensor(name, np.ascontiguousarray(trained[name]))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    print(f"{ADAPTER.name}: {ADAPTER.stat().st_size / 1e6:.1f} MB; now run training.adapter_notes", file=sys.stderr)


if __name__ == "__main__":
    {"prepare": prepare, "pack": pack}[sys.argv[1]](Path(sys.argv[2]), *map(int, sys.argv[3:]))
