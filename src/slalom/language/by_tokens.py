"""An answer by its tokens: a process (surrogates/gp.py) of the log-odds of each of them.

It takes the place of the process of the score, and needs no SLALOM: log-odds of single tokens are
nearer to sums. What was asked stays as it was measured. R² and errors are those of the process of
the score, which knows less. Shapley values are the process's and, by orders in which sources join,
of what the tokens change: their sum stays what it is.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.explanation import Explanation
from slalom.samplers.base import all_subsets
from slalom.surrogates.gp import Asked, Process
from slalom.surrogates.shapley_estimates import shapley_of_all
from slalom.surrogates.slalom.process import ProcessModel

MOST_ALL = 10  # sources of which all subsets are predicted; of more, those on the way of orders
N_ORDERS = 64


def by_tokens(explanation: Explanation) -> Explanation:
    """The same by the tokens of its answer, where a process was fitted and something is unknown."""
    said, model = explanation.said, explanation.model
    if said is None or not isinstance(model, ProcessModel) or explanation.quality.trust == "exact":
        return explanation
    score, slalom, n_units = model.mean, model.fitted, len(explanation.units)
    rows = {shown.tobytes(): row for row, shown in enumerate(said.present)}
    log_odds = said.log_odds[[rows[shown.tobytes()] for shown in score.present]]
    noise = score.noise * score.frame.spread**2
    no_level = np.zeros_like(score.answers)
    asked = Asked(score.present, score.answers, no_level, noise, log_odds)
    process = Process.of(asked, np.ones(n_units))
    tokens = ProcessModel(slalom, process.mean)
    untold = ProcessModel(slalom, replace(process.mean, log_odds=None))

    def changed(present: BoolArray) -> FloatArray:
        counts = present.astype(np.float64)
        return tokens.predict(counts) - untold.predict(counts)

    single = np.eye(n_units)
    shapley, _ = process.shapley(slalom, np.zeros((n_units, 1)))
    scores = explanation.scores | {"shapley": shapley[:, 0] + _shapley(changed, n_units)}
    removal = tokens.predict(np.ones((1, n_units))) - tokens.predict(1.0 - single)
    alone = tokens.predict(single) - tokens.empty_score
    for name, estimated in (("removal", removal), ("alone", alone)):
        scores[name] = np.where(explanation.is_measured(name), scores[name], estimated)
    return replace(explanation, model=tokens, scores=scores)


def _shapley(game: Callable[[BoolArray], FloatArray], n_units: int) -> FloatArray:
    """(n_units,) exactly, or by orders, each beside its reverse."""
    if n_units <= MOST_ALL:
        every = all_subsets(n_units)
        return shapley_of_all(every, game(every))
    drawn = np.tile(np.arange(n_units), (N_ORDERS // 2, 1))
    drawn = np.random.default_rng(0).permuted(drawn, axis=1)
    places = np.vstack([drawn, drawn[:, ::-1]]).argsort(axis=1)  # of each unit in each order
    joined = places[:, None, :] < np.arange(n_units + 1)[:, None]
    steps = np.diff(game(joined.reshape(-1, n_units)).reshape(N_ORDERS, -1), axis=1)
    return np.asarray(np.take_along_axis(steps, places, axis=1).mean(axis=0))
