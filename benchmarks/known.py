"""Are the errors honest where the truth is known? SLALOMs drawn at random, their answers noisy.

    python -m benchmarks.known [--draws 12] [--seed 0] [--case NAME …] [--out FILE]

Of every case (how many answers, how much noise, what the truth is made of) so many models are
drawn and fitted. Shown is the share of 90 % intervals that hold the truth (85–95 % is right),
of what only a model has (values, importances, the length curve) and of what a classifier could
be asked, as the fit alone tells it. In brackets how far an interval reaches to either side, in
units of what the truth spreads by among units (of the curve: of the scores' spread); an interval
that says nothing holds everything.
"""

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.coverage import hits, reach_of
from slalom.document import FloatArray
from slalom.samplers.base import random_subsets
from slalom.surrogates.base import Fit, Observations
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.length import LengthCurve, knots_of
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.readouts import read_outs

N_UNITS = 30
NAMES = ("value", "importance", "alone", "removal", "shapley", "length")
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """What the truth is made of, and what is asked of it."""

    n_rows: int
    noise: float
    common: float = 0.0  # what values have in common, of what they vary by
    direct: float = 0.0
    drift: float = 0.0  # of the length curve, per knot

    def drawn(self, rng: np.random.Generator) -> SlalomModel:
        """A model of this kind."""
        knots, direct = knots_of(N_UNITS), self.direct * rng.normal(size=N_UNITS)
        values = 1.5 * (rng.normal(size=N_UNITS) + self.common * rng.normal())
        return SlalomModel(
            values,
            0.8 * rng.normal(size=N_UNITS),
            Anchor(0.4, 1.0),
            direct=direct - direct.mean(),
            length=LengthCurve(knots, self.drift * rng.normal(size=len(knots)).cumsum()),
        )

    def asked(self, model: SlalomModel, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Counts and answers: both ends, every unit alone where there are rows for it, subsets."""
        n_rows = self.n_rows
        even, logs = rng.integers(1, N_UNITS, n_rows), rng.uniform(0, np.log(N_UNITS), n_rows)
        sizes = np.where(rng.random(n_rows) < 0.5, even, np.exp(logs)).astype(int)
        ends = np.stack([np.ones(N_UNITS), np.zeros(N_UNITS)])
        alone = np.eye(N_UNITS)[: N_UNITS if n_rows >= 10 * N_UNITS else 0]
        counts = np.vstack([ends, alone, random_subsets(sizes, N_UNITS, rng)])[:n_rows]
        counts = np.unique(counts.astype(float), axis=0)
        noise = self.noise * rng.normal(size=len(counts))
        return counts, model.predict(counts) + noise * (counts.sum(axis=1) > 0)


CASES = {
    "few": Case(120, 0.1),
    "few, noisy": Case(120, 0.4),
    "many": Case(450, 0.1),
    "many, noisy": Case(450, 0.4),
    "direct": Case(450, 0.2, direct=0.15),
    "drift": Case(450, 0.2, drift=0.5),
    "drift, half in common": Case(450, 0.2, drift=0.5, common=0.5),
    "drift, as much in common": Case(450, 0.2, drift=0.5, common=1.0),
    "drift, few": Case(120, 0.2, drift=0.5, common=0.5),
}


def row_of(case: Case, seed: int) -> Row:
    """What was said, its error and the truth, of every name; {}: too little was asked to tell."""
    rng = np.random.default_rng(seed)
    model = case.drawn(rng)
    counts, scores = case.asked(model, rng)
    weights, document = np.ones(len(counts)), np.ones(N_UNITS)
    fit = SlalomSurrogate().fit(
        Observations(counts, scores, weights=weights, document_counts=document)
    )
    if not fit.errors:
        return {}
    truth = read_outs(model, document)
    truth["importance"] = truth["importance"] - truth["importance"].mean()  # only differences count
    told = {name: (fit.scores[name], fit.errors[name], truth[name]) for name in NAMES[:-1]}
    told["length"] = _curve(fit, model)
    spreads = {name: float(truth[name].std()) for name in NAMES[:-1]}
    return {
        name: {"spread": spreads.get(name, float(scores.std())), **_rounded(*parts)}
        for name, parts in told.items()
    }


def _rounded(said: FloatArray, error: FloatArray, truth: FloatArray) -> dict[str, list[float]]:
    parts = {"said": said, "error": error, "truth": truth}
    return {key: np.round(part, 4).tolist() for key, part in parts.items()}


def _curve(fit: Fit, model: SlalomModel) -> tuple[FloatArray, FloatArray, FloatArray]:
    sizes = np.arange(1.0, N_UNITS + 1)
    assert isinstance(fit.model, SlalomModel)
    assert fit.model.length is not None
    assert model.length is not None
    assert fit.length_errors is not None
    return fit.model.length(sizes), fit.length_errors[1:], model.length(sizes)


def shown(name: str, rows: list[Row]) -> None:
    """Coverage, and how wide intervals are, of one case."""
    parts = []
    for read_out in NAMES:
        held = np.mean([hits(row[read_out]) for row in rows])
        reach = np.mean([reach_of(row[read_out]) for row in rows])
        parts.append(f"{read_out} {held:.2f} ({reach:.1f})")
    print(f"{name:24s} {len(rows)} models: {', '.join(parts)}", flush=True)


def main() -> None:
    given = _options().parse_args()
    kept: dict[str, list[Row]] = {}
    for name in given.case or CASES:
        rows = [row_of(CASES[name], given.seed + draw) for draw in range(given.draws)]
        kept[name] = [row for row in rows if row]
        shown(name, kept[name])
    if given.out:
        given.out.write_text(json.dumps(kept) + "\n", encoding="utf-8")


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--draws", type=int, default=12)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--case", nargs="*", choices=list(CASES), default=[])
    options.add_argument("--out", type=Path, help="keep the rows as JSON")
    return options


if __name__ == "__main__":
    main()
