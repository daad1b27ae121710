"""What the paper proves, measured: transformers that cannot count, and SLALOMs made into BERTs.

counting      proposition 4.1 and corollary 4.2, and what lifts them (section 4.3)
construction  proposition 5.1, and whether methods read the table back
"""

from collections.abc import Mapping
from functools import partial

import numpy as np

import slalom
from experiments.bench import Bench, Part, Record
from experiments.table import Cell, Number, Panel, Table, mean_of, points

Records = Mapping[str, Record]
LENGTHS = tuple(range(1, 31))
TOKEN, CLS = 7, 2  # any two
CASES = ("no positions", "no positions, after [CLS]", "positions")
N_WORDS, MAX_LENGTH, N_SEQUENCES = 40, 60, 200
SIZES = ((1, 1), (4, 1), (1, 6), (2, 2))  # heads, layers
METHODS = {"slalom-analytic": False, "slalom-eff": False, "slalom": True}  # name → anchored


def counting_parts(bench: Bench) -> dict[str, Part]:
    from slalom.theory.propositions import STACKS

    n_seeds = 1 if bench.scale.name == "tiny" else 5
    return {
        f"theory/counting-{stack}-{n_layers}": Part(
            partial(counted, stack=stack, n_layers=n_layers, n_seeds=n_seeds)
        )
        for stack in STACKS
        for n_layers in (1, 3)
    }


def counted(bench: Bench, *, stack: str, n_layers: int, n_seeds: int) -> Record:
    """Log-odds of a token shown 1 to 30 times, less those of one: (n_seeds, 30) for each case."""
    from slalom.theory.propositions import random_stack, repeated_logits, without_positions

    curves: dict[str, list[list[float]]] = {case: [] for case in CASES}
    for seed in range(bench.seed, bench.seed + n_seeds):
        whole = random_stack(stack, n_layers, seed)
        bare = without_positions(whole)
        shown = ((bare, ()), (bare, (CLS,)), (whole, ()))
        for case, (model, prefix) in zip(CASES, shown, strict=True):
            logits = repeated_logits(model, [TOKEN], LENGTHS, prefix=prefix)
            log_odds = logits[:, 1] - logits[:, 0]
            curves[case].append((log_odds - log_odds[0]).tolist())
    return {"stack": stack, "n_layers": n_layers, "curves": curves}


def counting(records: Records) -> Table:
    """How far a repeated token moves the log-odds."""
    rows: list[tuple[Cell, ...]] = []
    for record in records.values():
        moved = [mean_of([float(np.ptp(c)) for c in record["curves"][case]]) for case in CASES]
        rows.append((named(record), *moved))
    panels = tuple(
        Panel(
            case,
            "k",
            "log-odds of k × τ, less those of τ",
            (
                points("additive, w = 0.1", LENGTHS, 0.1 * np.arange(len(LENGTHS))),
                *(points(named(r), LENGTHS, r["curves"][case][0]) for r in records.values()),
            ),
        )
        for case in CASES
    )
    return Table(
        title="Proposition 4.1 and corollary 4.2: how far a repeated token moves the log-odds",
        columns=("random stack", *CASES),
        rows=tuple(rows),
        notes=(
            "Largest minus smallest log-odds of a token shown 1 to 30 times, mean over seeds. An "
            "additive model with weight w moves by 29 w.",
            "Weights are random and large (standard deviation 0.3); trained models are in Fig. 3.",
        ),
        panels=panels,
    )


def named(record: Record) -> str:
    return f"{record['stack']}, {plural(record['n_layers'], 'layer')}"


def plural(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' if number > 1 else ''}"


def construction_parts(bench: Bench) -> dict[str, Part]:
    return {
        f"theory/construction-{n_heads}-{n_layers}": Part(
            partial(constructed, n_heads=n_heads, n_layers=n_layers)
        )
        for n_heads, n_layers in SIZES
    }


def constructed(bench: Bench, *, n_heads: int, n_layers: int) -> Record:
    """A BERT made of a random table: its log-odds, and the table as methods read it."""
    from slalom.theory.construction import Anchor, SlalomModel, bert_of

    rng = np.random.default_rng(bench.seed)
    words = [f"word{place}" for place in range(N_WORDS)]
    values, importances = 2 * rng.normal(size=N_WORDS), rng.normal(size=N_WORDS)
    importances -= importances.mean()
    found: Record = {"n_heads": n_heads, "n_layers": n_layers, "methods": {}}
    for method, anchored in METHODS.items():
        table = SlalomModel(values, importances, Anchor(0.4, 0.5) if anchored else None)
        bert = bert_of(words, table, n_heads=n_heads, n_layers=n_layers)
        classifier = slalom.HuggingFaceClassifier(*bert)
        drawn = [rng.integers(0, N_WORDS, rng.integers(1, MAX_LENGTH)) for _ in range(N_SEQUENCES)]
        counts = np.array([np.bincount(row, minlength=N_WORDS) for row in drawn])
        logits = classifier([" ".join(words[place] for place in row) for row in drawn])
        e = slalom.explain(classifier, " ".join(words), method, target="positive", units="word")
        found["methods"][method] = {
            "log_odds": float(np.abs(logits[:, 1] - logits[:, 0] - table.predict(counts)).max()),
            "value": e.scores["value"].tolist(),
            "importance": e.scores["importance"].tolist(),
            "n_queries": e.quality.n_queries,
        }
    return {**found, "value": values.tolist(), "importance": importances.tolist()}


def construction(records: Records) -> Table:
    """How exactly a BERT is the SLALOM it was made of, and how exactly the table comes back."""
    rows: list[tuple[Cell, ...]] = []
    for record in records.values():
        for method, found in record["methods"].items():
            off = [float(np.abs(np.subtract(found[n], record[n])).max()) for n in KINDS]
            cells = (Number(found["log_odds"]), *(Number(value) for value in off))
            size = f"{plural(record['n_heads'], 'head')}, {plural(record['n_layers'], 'layer')}"
            rows.append((size, method, *cells, str(found["n_queries"])))
    first = next(iter(records.values()))
    panels = tuple(
        Panel(
            f"{kind}s of {N_WORDS} words",
            "in the table",
            "read off BERT",
            tuple(
                points(method, first[kind], found[kind], joined=False)
                for method, found in first["methods"].items()
            ),
        )
        for kind in KINDS
    )
    return Table(
        title="Proposition 5.1: a BERT made of a table of values and importances",
        columns=("BERT", "method", *(f"{kind} off by" for kind in ("log-odds", *KINDS)), "queries"),
        rows=tuple(rows),
        notes=(
            f"Largest differences: of the log-odds over {N_SEQUENCES} random sequences of up to "
            f"{MAX_LENGTH - 1} words, of the table over {N_WORDS} words. For slalom the table has "
            "an anchor, which [CLS] gets.",
        ),
        panels=panels,
    )


KINDS = ("value", "importance")
