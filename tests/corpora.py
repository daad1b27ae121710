"""Small corpora, and a quick classifier that other processes can import."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np

import slalom

SAYS = {"great": 3.0, "fine": 1.0, "dull": -1.0, "awful": -2.0}
WORDS = [*SAYS, *"a the film end with song story of no one here very".split()]


def log_odds(texts: list[str]) -> np.ndarray:
    odds = [0.2 + sum(SAYS.get(word, 0.0) for word in text.split()) for text in texts]
    return np.column_stack([np.zeros(len(texts)), odds])


def classifier() -> slalom.FunctionClassifier:
    return slalom.FunctionClassifier(log_odds, ["bad", "good"], gives="logits", name="small")


def reviews(n: int, *, seed: int = 0) -> list[dict[str, object]]:
    rng = random.Random(seed)
    return [
        {
            "text": " ".join(rng.choices(WORDS, k=rng.randint(3, 7))),
            "key": f"r{number}",
            "stars": rng.randint(1, 5),
            "group": rng.choice("AB"),
        }
        for number in range(n)
    ]


def write_jsonl(path: Path, rows: list[dict[str, object]], *extra_lines: str) -> Path:
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    path.write_text("\n".join([*lines, *extra_lines]) + "\n", encoding="utf-8")
    return path


def in_python(script: str, *, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, which sees what the tests see."""
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
        env=environment(),
    )


def environment() -> dict[str, str]:
    here = str(Path(__file__).parent)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([here, *filter(None, sys.path)])}
