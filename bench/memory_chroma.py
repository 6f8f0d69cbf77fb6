"""Chroma over the same vectors and questions. Runs in `.venv-bench`, which has nothing of ours."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import chromadb
import numpy as np


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def _resident() -> float:
    status = Path("/proc/self/status").read_text().splitlines()
    return next(float(line.split()[1]) for line in status if line.startswith("VmRSS"))


def run(folder: Path, warm: int = 20) -> dict[str, float]:
    texts, vectors = json.loads((folder / "facts.json").read_text()), np.load(folder / "vectors.npy")
    asked = np.load(folder / "asked.npy")
    client = chromadb.PersistentClient(path=str(folder / "chroma"))
    collection = client.create_collection("facts", metadata={"hnsw:space": "cosine"}, embedding_function=None)
    started = time.perf_counter()
    step = min(1000, client.get_max_batch_size())
    for start in range(0, len(texts), step):
        end = start + step
        ids = [str(number) for number in range(start, min(end, len(texts)))]
        collection.add(ids=ids, embeddings=vectors[start:end], documents=texts[start:end])
    figures = {"fill_seconds": time.perf_counter() - started}
    cpu: list[float] = []
    wall: list[float] = []
    for number in range(len(asked)):
        before = time.process_time(), time.perf_counter()
        collection.query(query_embeddings=asked[number : number + 1], n_results=10)
        if number >= warm:
            cpu.append((time.process_time() - before[0]) * 1000)
            wall.append((time.perf_counter() - before[1]) * 1000)
    inserts: list[float] = []
    for number in range(100):
        began = time.perf_counter()
        collection.add(ids=[f"new {number}"], embeddings=vectors[number : number + 1], documents=[texts[number]])
        inserts.append((time.perf_counter() - began) * 1000)
    return figures | {
        "p50_cpu_ms": percentile(cpu, 0.5),
        "p95_cpu_ms": percentile(cpu, 0.95),
        "p50_ms": percentile(wall, 0.5),
        "p95_ms": percentile(wall, 0.95),
        "insert_p50_ms": percentile(inserts, 0.5),
        "rss_mb": _resident() / 1024,
    }


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]))))
