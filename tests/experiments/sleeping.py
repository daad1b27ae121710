"""Work of which nothing comes before it is stopped: `python sleeping.py FOLDER` has two at work."""

import sys
import time
from pathlib import Path

from experiments.bench import Bench, Part
from experiments.scale import TINY


def asleep(bench):
    (bench.out / f"begun-{time.time_ns()}").touch()
    time.sleep(600)
    return {}


if __name__ == "__main__":
    from sleeping import asleep as travels  # by a name that other processes find

    parts = {str(number): Part(travels) for number in range(5)}
    Bench(TINY, out=Path(sys.argv[1]), jobs=2).finished(parts)
