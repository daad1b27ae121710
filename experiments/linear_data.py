"""Models trained on linear data: figures 1, 3, 4ab and 6 and table 6 of the paper.

One part per model measures all of it: what it says to k × "perfect", what KernelSHAP makes of
that, and how well three surrogates describe its answers to new samples. The GAM has one
coefficient per word and position (lasso 0.01), as in the paper. Errors are mean squared errors
on samples that were not fitted; the paper gives those of the fitted ones.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from training.synthetic import (
    END,
    KINDS,
    LINEAR,
    MAX_LENGTH,
    Ids,
    Linear,
    as_texts,
    relu_net,
    trained_transformer,
    word_counts,
    word_tokenizer,
)

import slalom
from experiments.bench import Bench, Part, Record
from experiments.table import rounded
from slalom.surrogates.base import Observations

Floats = NDArray[np.float64]
Answer = Callable[[Ids], Floats]  # sequences → log-odds
WORD = "perfect"
TIMES = tuple(range(1, MAX_LENGTH + 1))  # of one word in figure 3
EXPLAINED = (1, 2, 3, 4, 6, 8, 10, 12, 14)  # of one word in figure 6, where all subsets are asked
SHOWN = 150  # points of a scatter that are kept
COLLAPSED = 0.25  # spread of the log-odds below which a model has learned nothing
MAX_ATTEMPTS = 3
NOTHING = np.full((1, MAX_LENGTH), END)


def parts(bench: Bench) -> dict[str, Part]:
    """Deep models first: they take longest."""
    scale = bench.scale
    found = {}
    for number in range(scale.n_seeds):
        for depth in scale.depths:
            for kind in KINDS:
                work = partial(measured, kind=kind, depth=depth, number=number)
                found[f"linear/{kind}-{depth}/{number}"] = Part(work, number - depth / 100)
        for width in scale.relu_widths:
            work = partial(measured_net, width=width, number=number)
            found[f"linear/relu-{width}/{number}"] = Part(work, number)
    return found


def measured(bench: Bench, *, kind: str, depth: int, number: int) -> Record:
    """Train one transformer, again with another seed where it collapsed, and measure it."""
    truth, collapsed = Linear(), []
    for attempt in range(MAX_ATTEMPTS):
        seed = bench.seed + number + 100 * attempt
        model = trained_transformer(truth, kind, depth, bench.scale.linear, seed=seed)
        tokenizer = word_tokenizer(truth.words, with_cls=kind != "gpt2")
        classifier = slalom.HuggingFaceClassifier(model, tokenizer)
        answer = partial(asked, classifier)
        if answer(truth.draw(500, np.random.default_rng(7))).std() > COLLAPSED:
            break
        collapsed.append(seed)
    return {
        "kind": kind,
        "depth": depth,
        "number": number,
        "seed": seed,
        "collapsed": collapsed,
        "repeated": repeated(answer),
        "shapley": shapley(answer, empty=0.0 if kind == "gpt2" else float(answer(NOTHING)[0])),
        **surrogates(answer, bench.scale.n_new, seed),
    }


def measured_net(bench: Bench, *, width: int, number: int) -> Record:
    """The same of a ReLU net on word counts."""
    import torch

    seed = bench.seed + number
    net = relu_net(width, seed=seed)

    def answer(sequences: Ids) -> Floats:
        counts = torch.tensor(word_counts(sequences, len(LINEAR)), dtype=torch.float32)
        with torch.no_grad():
            return np.asarray(net(counts)[:, 0].double().numpy())

    return {
        "kind": f"ReLU net, {width} wide",
        "depth": 2,
        "number": number,
        "seed": seed,
        "collapsed": [],
        "repeated": repeated(answer),
        "shapley": shapley(answer, empty=float(answer(NOTHING)[0])),
    }


def asked(classifier: Any, sequences: Ids) -> Floats:
    """The log-odds a classifier gives to sequences of words."""
    logits = classifier(as_texts(Linear(), sequences))
    return np.asarray(logits[:, 1] - logits[:, 0])


def repeated(answer: Answer) -> list[float]:
    """The log-odds of k × "perfect", k = 1 … 30."""
    place = Linear().words.index(WORD)
    columns = np.arange(MAX_LENGTH)
    rows = np.where(columns < np.array(TIMES)[:, None], place, END)
    return rounded(answer(rows))


def shapley(answer: Answer, *, empty: float) -> list[float]:
    """The mean Shapley value of a word among k × "perfect"; every subset is asked.

    A decoder cannot read the empty text: it is taken to say nothing, 0.
    """

    def logits(texts: list[str]) -> Floats:
        words = [text.split() for text in texts]
        rows = np.full((len(words), MAX_LENGTH), END)
        for row, found in zip(rows, words, strict=True):
            row[: len(found)] = [Linear().words.index(word) for word in found]
        scores = np.full(len(rows), empty)
        shown = rows[:, 0] != END
        scores[shown] = answer(rows[shown])
        return np.stack([-scores / 2, scores / 2], axis=1)

    classifier = slalom.FunctionClassifier(logits, labels=["0", "1"], gives="logits")
    found = []
    for times in EXPLAINED:
        text = " ".join([WORD] * times)
        explanation = slalom.explain(classifier, text, "exact-shapley", target=1, n_queries=2**14)
        found.append(explanation.scores["score"].mean())
    return rounded(found)


def surrogates(answer: Answer, n_new: int, seed: int) -> Record:
    """Mean squared errors of OLS, GAM and SLALOM, on fitted and on fresh samples."""
    rng = np.random.default_rng(10_000 + seed)
    fitted, fresh = Linear().draw(n_new, rng), Linear().draw(n_new, rng)
    wanted, truth = answer(fitted), answer(fresh)
    errors, curves, scatter = {}, {}, {"model": rounded(truth[:SHOWN])}
    for name, fit in (("linear", _linear), ("GAM", _gam), ("SLALOM", _slalom)):
        predict = fit(fitted, wanted)
        errors[name] = [
            float(np.mean((predict(fitted) - wanted) ** 2)),
            float(np.mean((predict(fresh) - truth) ** 2)),
        ]
        scatter[name] = rounded(predict(fresh)[:SHOWN])
        curves[name] = repeated(predict)
    return {"errors": errors, "curves": curves, "scatter": scatter, "variance": float(truth.var())}


def _linear(sequences: Ids, scores: Floats) -> Answer:
    from sklearn.linear_model import LinearRegression

    fitted = LinearRegression().fit(word_counts(sequences, len(LINEAR)), scores)
    return lambda other: np.asarray(fitted.predict(word_counts(other, len(LINEAR))))


def _gam(sequences: Ids, scores: Floats) -> Answer:
    from sklearn.linear_model import Lasso

    fitted = Lasso(alpha=0.01).fit(_placed(sequences), scores)
    return lambda other: np.asarray(fitted.predict(_placed(other)))


def _placed(sequences: Ids) -> Floats:
    """One column per word and position."""
    return (
        (sequences[:, :, None] == np.arange(len(LINEAR))).reshape(len(sequences), -1).astype(float)
    )


def _slalom(sequences: Ids, scores: Floats) -> Answer:
    model = fitted_slalom(word_counts(sequences, len(LINEAR)), scores)
    return lambda other: np.asarray(model.predict(word_counts(other, len(LINEAR))))


def fitted_slalom(counts: Floats, scores: Floats) -> Any:
    """The paper's SLALOM, without anchor, by least squares."""
    surrogate: Any = slalom.METHODS["slalom-eff"].surrogate  # type: ignore[attr-defined]
    weights, document = np.ones(len(counts)), np.ones(counts.shape[1])
    return surrogate.fit(Observations(counts, scores, weights, document)).model
