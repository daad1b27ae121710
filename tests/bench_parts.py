"""Parts of experiments that worker processes can import: one ends at once, one only when killed.

`python bench_parts.py FOLDER` runs five of the latter, two at a time.
"""

import sys
import time
from pathlib import Path

from experiments.bench import Bench, Part
from experiments.scale import TINY


def quick(bench):
    return {"n": 1}


def asleep(bench):
    (bench.out / f"begun-{time.time_ns()}").touch()
    time.sleep(600)
    return {}


if __name__ == "__main__":
    from bench_parts import asleep as importable  # workers cannot import from __main__

    parts = {str(number): Part(importable) for number in range(5)}
    Bench(TINY, out=Path(sys.argv[1]), jobs=2).run(parts)
