"""Trains the adapter of the packaged mind on one GPU, in about fifteen minutes (FST-04).

`python3 adapter.py FOLDER` reads what `adapter_data.py prepare` wrote and writes `adapter.npz` beside it; one that is
there is trained further. It needs only torch and numpy, so that this one file can be copied to a machine that has a GPU
and nothing of the project.
"""

from __future__ import annotations

import math
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

LAYERS, HEADS, KEY_HEADS, WIDTH, HEAD_WIDTH = 30, 9, 3, 576, 64
ROTARY_BASE, SMALL = 100_000.0, 1e-5
ADAPTED = ("attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")
RANK, SCALE, RATE, BATCH, SORTED, EPOCHS, WARM_UP = 16, 2.0, 6e-4, 128, 12, 2.8, 50
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
IGNORED = -100


class AdaptedModel(nn.Module):
    """The packaged weights as they are, and beside every matrix two thin ones that are trained."""

    def __init__(self, weights: dict[str, Tensor]) -> None:
        super().__init__()
        self._weights = weights
        self.down, self.up = nn.ParameterDict(), nn.ParameterDict()
        for layer in range(LAYERS):
            for name in ADAPTED:
                rows, columns = weights[f"blk.{layer}.{name}.weight"].shape
                start = torch.randn(RANK, columns, device=DEVICE) / math.sqrt(columns)
                self.down[f"{layer}_{name}"] = nn.Parameter(start)
                self.up[f"{layer}_{name}"] = nn.Parameter(torch.zeros(rows, RANK, device=DEVICE))
        places = torch.arange(0, HEAD_WIDTH, 2, device=DEVICE).float() / HEAD_WIDTH
        self._frequencies = 1.0 / ROTARY_BASE**places

    def forward(self, tokens: Tensor) -> Tensor:
        """The last hidden state at every place."""
        count, length = tokens.shape
        hidden = F.embedding(tokens, self._weights["token_embd.weight"])
        for layer in range(LAYERS):
            normed = self._norm(hidden, f"blk.{layer}.attn_norm.weight")
            heads = (("attn_q", HEADS), ("attn_k", KEY_HEADS), ("attn_v", KEY_HEADS))
            query, key, value = (
                self._apply(normed, layer, name).view(count, length, number, HEAD_WIDTH).transpose(1, 2)
                for name, number in heads
            )
            key, value = (one.repeat_interleave(HEADS // KEY_HEADS, 1) for one in (self._rotate(key), value))
            seen = F.scaled_dot_product_attention(self._rotate(query), key, value, is_causal=True)
            hidden = hidden + self._apply(seen.transpose(1, 2).reshape(count, length, WIDTH), layer, "attn_output")
            normed = self._norm(hidden, f"blk.{layer}.ffn_norm.weight")
            gate = F.silu(self._apply(normed, layer, "ffn_gate"))
            hidden = hidden + self._apply(gate * self._apply(normed, layer, "ffn_up"), layer, "ffn_down")
        return self._norm(hidden, "output_norm.weight")

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self._weights["token_embd.weight"])

    def _apply(self, x: Tensor, layer: int, name: str) -> Tensor:
        key = f"{layer}_{name}"
        change = F.linear(F.linear(x, self.down[key].to(x.dtype)), self.up[key].to(x.dtype))
        return F.linear(x, self._weights[f"blk.{layer}.{name}.weight"]) + SCALE * change

    def _norm(self, x: Tensor, name: str) -> Tensor:
        x = x.float()
        return (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + SMALL) * self._weights[name]).to(torch.bfloat16)

    def _rotate(self, x: Tensor) -> Tensor:
        """Rotary positions on neighbouring pairs, which is how GGUF lays them out."""
        angle = torch.arange(x.shape[2], device=DEVICE)[:, None].float() * self._frequencies[None]
        cos, sin = angle.cos()[None, None], angle.sin()[None, None]
        even, odd = x[..., 0::2].float(), x[..., 1::2].float()
        return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).to(torch.bfloat16)


def load_weights(folder: Path) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for file in sorted(folder.glob("weights-*.npz")):
        for key, raw in np.load(file).items():
            name, kind, shape = key.split("|")
            values = torch.from_numpy(read_values(kind, raw).reshape([int(side) for side in shape.split("x")]))
            found[name] = values.to(DEVICE).to(torch.float32 if kind == "F32" else torch.bfloat16)
    return found


def read_values(kind: str, raw: np.ndarray) -> np.ndarray:
    """The numbers of a tensor of the packaged file: plain, or in blocks of 32 with a scale and a least value."""
    if kind == "F32":
        return raw.view(np.float32).copy()
    if kind == "Q8_0":
        blocks = raw.reshape(-1, 34)
        return _half(blocks[:, :2]) * blocks[:, 2:].copy().view(np.int8).astype(np.float32)
    if kind == "Q4_1":
        blocks = raw.reshape(-1, 20)
        nibbles = np.concatenate([blocks[:, 4:] & 15, blocks[:, 4:] >> 4], 1).astype(np.float32)
        return nibbles * _half(blocks[:, 0:2]) + _half(blocks[:, 2:4])
    raise SystemExit(f"Tensors of the kind {kind} are not known here.")


def _half(columns: np.ndarray) -> np.ndarray:
    return columns.copy().view(np.float16).astype(np.float32)


def load_rows(folder: Path) -> tuple[list[tuple[list[int], list[int]]], int]:
    data = np.load(folder / "rows.npz")
    tokens, rows, start = data["tokens"].tolist(), [], 0
    for asked, answered in data["lengths"].tolist():
        middle, end = start + asked, start + asked + answered
        rows.append((tokens[start:middle], tokens[middle:end]))
        start = end
    return rows, int(data["end"])


def draw_batches(rows: list[tuple[list[int], list[int]]], draw: random.Random) -> list[list[int]]:
    """All rows once, those of about one length together: half of what a batch holds would be padding otherwise."""
    order, batches = draw.sample(range(len(rows)), len(rows)), list[list[int]]()
    for start in range(0, len(rows), BATCH * SORTED):
        chunk = sorted(order[start : start + BATCH * SORTED], key=lambda place: sum(map(len, rows[place])))
        batches += [chunk[first : first + BATCH] for first in range(0, len(chunk), BATCH)]
    return draw.sample(batches, len(batches))


def make_batch(rows: list[tuple[list[int], list[int]]], padding: int) -> tuple[Tensor, Tensor]:
    """Tokens, and what each place should predict: only the answer is learned."""
    longest = max(len(asked) + len(answered) for asked, answered in rows)
    tokens = torch.full((len(rows), longest), padding)
    targets = torch.full((len(rows), longest), IGNORED)
    for place, (asked, answered) in enumerate(rows):
        end = len(asked) + len(answered)
        tokens[place, :end] = torch.tensor(asked + answered)
        targets[place, len(asked) - 1 : end - 1] = torch.tensor(answered)
    return tokens.to(DEVICE), targets.to(DEVICE)


def train(model: AdaptedModel, rows: list[tuple[list[int], list[int]]], padding: int, steps: int, rate: float) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01, betas=(0.9, 0.98))
    draw, batches, began = random.Random(0), list[list[int]](), time.monotonic()
    for step in range(steps):
        batches = batches or draw_batches(rows, draw)
        tokens, targets = make_batch([rows[place] for place in batches.pop()], padding)
        decay = 0.5 * (1 + math.cos(math.pi * step / steps))
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1, (step + 1) / WARM_UP) * max(0.02, decay)
        wanted = targets != IGNORED
        loss = F.cross_entropy(model.logits(model(tokens)[wanted]).float(), targets[wanted])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 100 == 0 or step == steps - 1:
            print(f"{step} of {steps}: loss {loss.item():.4f}, {time.monotonic() - began:.0f} s", flush=True)


def save(model: AdaptedModel, file: Path) -> None:
    """Under the names that llama.cpp expects in an adapter."""
    arrays = {}
    for side, matrices in (("a", model.down), ("b", model.up)):
        for key, value in matrices.items():
            layer, _, name = key.partition("_")
            arrays[f"blk.{layer}.{name}.weight.lora_{side}"] = value.detach().half().cpu().numpy()
    np.savez(file, **arrays)


def load(model: AdaptedModel, file: Path) -> None:
    """Go on with what `save` wrote."""
    stored = np.load(file)
    for side, matrices in (("a", model.down), ("b", model.up)):
        for key, value in matrices.items():
            layer, _, name = key.partition("_")
            value.data.copy_(torch.from_numpy(stored[f"blk.{layer}.{name}.weight.lora_{side}"]))


def main() -> None:
    folder = Path(sys.argv[1])
    made = folder / "adapter.npz"
    torch.manual_seed(0)
    rows, padding = load_rows(folder)
    model = AdaptedModel(load_weights(folder))
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else int(len(rows) * EPOCHS / BATCH)
    if made.exists():
        load(model, made)
    train(model, rows, padding, steps, RATE / 2 if made.exists() else RATE)
    save(model, made)


if __name__ == "__main__":
    main()
