"""The figures of Lopardo et al. as tables: what lopardo.py measured, read off its records."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.bench import Record
from experiments.lopardo import EXPLAINERS, FORMS, N_RUNS, TEXT
from experiments.table import Boxes, Cell, Map, Number, Panel, Table, mean_of, points

Records = Mapping[str, Record]
Setting = tuple[Any, ...]  # weights, T, T_max, loudness
SHOWN = 30  # words of a figure
OURS = (
    "The paper trains its model on IMDB reviews and does not publish it; ours are random, or "
    "trained here (128 places, 6 heads of width 32).",
)


def lime_limit(records: Records) -> Table:
    """Which formula do LIME runs follow?"""
    groups: dict[Setting, list[Record]] = {}
    for record in records.values():
        key = tuple(record[name] for name in ("weights", "n_words", "n_places", "loudness"))
        groups.setdefault(key, []).append(record)
    rows: list[tuple[Cell, ...]] = []
    for (weights, n_words, n_places, loudness), found in groups.items():
        off = {name: [distance(r[name], r["runs"]) for r in found] for name in FORMS}
        among = mean_of([distance(r["runs"][0], r["runs"][1:]) for r in found])
        loud: Cell = "–" if loudness is None else f"{loudness:g}"
        cells = (mean_of(off[name]) for name in FORMS)
        rows.append((weights, str(n_words), str(n_places), loud, *cells, among))
    return Table(
        title="LIME on one layer of attention against three formulas for its limit",
        columns=(
            "weights",
            "T = d",
            "T_max",
            "loudness",
            *(f"{name} form" for name in FORMS),
            "one run",
        ),
        rows=tuple(rows),
        differs=OURS,
        notes=(
            f"Numbers are distances to the mean of {N_RUNS} LIME runs, relative to its length; "
            "0.5 is what a factor of 3/2 alone costs. Loudness is the spread of q·k/√d.",
            "One run: the distance of one run to the mean of the others, what noise alone makes.",
            "The slides draw the printed form through boxplots of five runs. Nearest to the runs "
            f"here: {_nearest(records)}.",
        ),
        panels=tuple(_boxes(key, found[0]) for key, found in groups.items() if _is_drawn(key)),
    )


def distance(form: list[float], runs: list[list[float]]) -> float:
    mean = np.mean(runs, axis=0)
    return float(np.linalg.norm(np.array(form) - mean) / np.linalg.norm(mean))


def _nearest(records: Records) -> str:
    """How often each formula is the nearest to the runs."""
    nearest = [min(FORMS, key=lambda name: distance(r[name], r["runs"])) for r in records.values()]
    counted = {name: nearest.count(name) for name in FORMS}
    return ", ".join(f"{name} in {n} of {len(nearest)} cases" for name, n in counted.items())


def _is_drawn(key: Setting) -> bool:
    return key[1] > SHOWN and key[3] in (1.0, None)


def _boxes(key: Setting, record: Record) -> Panel:
    weights, _, n_places, _ = key
    order = np.argsort(record["exact"])
    picked = order[np.linspace(0, len(order) - 1, min(SHOWN, len(order))).astype(int)]
    runs = np.array(record["runs"])[:, picked]
    places = np.arange(len(picked))
    boxes = Boxes(f"{N_RUNS} LIME runs", tuple(tuple(map(float, column)) for column in runs.T))
    forms = tuple(
        points(f"{name} form", places, np.array(record[name])[picked], joined=False)
        for name in FORMS
    )
    return Panel(
        f"{weights}, T_max = {n_places}",
        f"{len(picked)} of the {len(order)} words, by coefficient",
        "coefficient",
        forms,
        boxes=boxes,
    )


def seven_explainers(records: Records) -> Table:
    """One sentence under all explainers, and how far they agree on reviews."""
    (record,) = records.values()
    first = record["sentences"][0]
    rows: list[tuple[Cell, ...]] = [
        (name, *(Number(value) for value in _scaled(first["scores"][name]))) for name in EXPLAINERS
    ]
    mean = [np.delete(row, at).mean() for at, row in enumerate(np.array(record["agreement"]))]
    agreeing = [f"{name} {value:.2f}" for name, value in zip(EXPLAINERS, mean, strict=True)]
    maps = [
        Map(
            f"scores of one sentence, log-odds {one['log_odds']:+.2f}",
            tuple(_word(*pair) for pair in zip(one["words"], one["known"], strict=True)),
            tuple(EXPLAINERS),
            tuple(_scaled(one["scores"][name]) for name in EXPLAINERS),
        )
        for one in record["sentences"]
    ]
    names = tuple(EXPLAINERS)
    table = tuple(tuple(row) for row in record["agreement"])
    return Table(
        title="Seven explainers of one sentence",
        columns=("explainer", *first["words"]),
        rows=tuple(rows),
        differs=OURS,
        notes=(
            f"One layer of attention, {record['n_reviews']} reviews, accuracy "
            f"{record['accuracy']:.3f} on others. Scores are scaled so that the largest size is 1.",
            "Mean rank correlation of sizes with the other explainers, over reviews of up to 40 "
            f"words: {', '.join(agreeing)}.",
            "The slides: methods are very un-alike. Words in brackets are unknown to the model.",
        ),
        panels=(*maps, Map("mean rank correlation of sizes", names, names, table)),
    )


def _scaled(scores: list[float]) -> tuple[float, ...]:
    largest = max(abs(score) for score in scores) or 1.0
    return tuple(score / largest for score in scores)


def _word(word: str, known: bool) -> str:
    return word if known else f"({word})"


def attention_maps(records: Records) -> Table:
    """Where the heads of the trained model look."""
    (record,) = records.values()
    rows: list[tuple[Cell, ...]] = []
    for one in record["sentences"]:
        for head, attention in enumerate(one["attention"], start=1):
            loudest = [int(at) for at in np.argsort(attention)[::-1][:3]]
            told = ", ".join(f"{one['words'][at]} {attention[at]:.2f}" for at in loudest)
            rows.append((" ".join(one["words"]), str(head), told, Number(float(sum(attention)))))
    return Table(
        title="Attention maps of a single layer",
        columns=("sentence", "head", "three loudest words", "attention on the sentence"),
        rows=tuple(rows),
        differs=OURS,
        notes=("The rest of the attention lies on the empty places after the sentence.",),
        panels=tuple(
            Map(
                "attention of the CLS token by head",
                tuple(_word(*pair) for pair in zip(one["words"], one["known"], strict=True)),
                tuple(f"head {head}" for head in range(1, len(one["attention"]) + 1)),
                tuple(tuple(row) for row in one["attention"]),
            )
            for one in record["sentences"]
        ),
    )


def histogram(records: Records) -> Table:
    """The counting task: two minima."""
    starts = list(dict.fromkeys(record["start"] for record in records.values()))
    rows: list[tuple[Cell, ...]] = []
    maps = []
    for start in starts:
        found = [record for record in records.values() if record["start"] == start]
        measures = ("accuracy", "error", "slope", "dependence", "preference")
        rows.append((start, *(mean_of([r[name] for r in found]) for name in measures)))
        table = tuple(tuple(row) for row in found[0]["attention"])
        maps.append(Map(f"{start} start: attention in {TEXT}", tuple(TEXT), tuple(TEXT), table))
    return Table(
        title="The histogram task has two minima",
        columns=(
            "start",
            "accuracy",
            "squared error",
            "gradient norm",
            "attention moves with the text by",
            "attention to an equal letter / to another",
        ),
        rows=tuple(rows),
        differs=(
            "One-hot letters and places, counts as numbers, a net of 64 ReLUs; Cui et al. learn "
            "their embeddings.",
        ),
        notes=(
            "The slides: two very different minima, one with an attention pattern that says "
            "nothing. A pattern that does not look at letters has 0 and 1 in the last columns.",
        ),
        panels=tuple(maps),
    )
