"""Figure 1 (what adds up and what does not) and figures 5, 10, 11 (pictures of real reviews)."""

from collections.abc import Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray
from training.classic import WordWeights

import slalom
from experiments.bench import Bench, Part, Record
from experiments.classifiers import classifier_of, data_of, needs
from experiments.people import marked_reviews
from experiments.reviews import documents
from experiments.table import Cell, Number, Panel, Series, Table, points, rounded

Records = Mapping[str, Record]
PAIRS = (("perfect", "funny"), ("wonderful", "boring"), ("awful", "weak"))
N_PICTURES = 3
N_NAMED = 12  # words written beside their points


def pair_parts(bench: Bench) -> dict[str, Part]:
    names = (*bench.scale.models, "bundled")
    found = {f"pairs/{name}": Part(partial(pairs, model=name), after=needs(name)) for name in names}
    return found | {"pairs/naive-bayes": Part(partial(pairs, model="naive-bayes"))}


def pairs(bench: Bench, *, model: str) -> Record:
    """Log-odds of two words, each alone and both together."""
    if model == "naive-bayes":
        from training.classic import naive_bayes

        from training import data

        reviews = data.imdb("train", data_of(bench))
        answer = partial(_added_up, naive_bayes(reviews))
    else:
        answer = classifier_of(bench, model)
    found = []
    for one, other in PAIRS:
        logits = np.asarray(answer([one, other, f"{one} {other}"]))
        found.append(rounded(logits[:, 1] - logits[:, 0]))
    return {"model": model, "log_odds": found}


def _added_up(model: WordWeights, texts: list[str]) -> NDArray[np.float64]:
    """The log-odds without the prior of the classes, as two columns."""
    chances = np.log(model(texts))
    scores = chances[:, 1] - chances[:, 0] - model.bias
    return np.stack([-scores / 2, scores / 2], axis=1)


def fig_1(records: Records) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for record in records.values():
        for (one, other), (t, u, both) in zip(PAIRS, record["log_odds"], strict=True):
            cells = [Number(value, digits=2) for value in (t, u, t + u, both)]
            rows.append((record["model"], f"{one}, {other}", *cells))
    return Table(
        title="Fig. 1: two words alone and together",
        columns=("model", "t, u", "F(t)", "F(u)", "F(t) + F(u)", "F(t, u)"),
        rows=tuple(rows),
        differs=("Models of our own training; other words than the paper's.",),
        notes=(
            "The paper: Naive Bayes adds up (0.93 + 0.19 = 1.12), BERT does not (1.09 and 0.29, "
            "together 0.45).",
        ),
    )


def picture_parts(bench: Bench) -> dict[str, Part]:
    kinds = {"reviews": False, "people": True}
    return {f"pictures/{name}": Part(partial(pictures, people=p)) for name, p in kinds.items()}


def two_layer_parts(bench: Bench) -> dict[str, Part]:
    """As the paper's figure 11: SLALOM-eff on a BERT and a GPT-2, or what the scale has."""
    names = [n for n in bench.scale.models if not n.startswith("distilbert")]
    return {
        f"pictures/{name}": Part(
            partial(pictures, people=False, model=name, method="slalom-eff"), after=needs(name)
        )
        for name in names
    }


def pictures(
    bench: Bench, *, people: bool, model: str = "bundled", method: str = "slalom"
) -> Record:
    """Values and importances of a few reviews, and what people marked where that is known."""
    classifier = classifier_of(bench, model)
    if people:
        marked = marked_reviews(data_of(bench))[:N_PICTURES]
        texts, spans = [m.text for m in marked], [m.spans for m in marked]
    else:
        texts = documents(bench)[:N_PICTURES]
        spans = [()] * len(texts)
    found = []
    for text, marks in zip(texts, spans, strict=True):
        e = slalom.explain(
            classifier, text, method, n_queries=bench.scale.budget, too_long="truncate"
        )
        inside = [any(a < end and start < b for a, b in marks) for start, end in e.spans]
        found.append(
            {
                "units": list(e.units),
                "marked": inside,
                "target": e.target,
                "scores": {n: rounded(e.scores[n]) for n in ("value", "importance", "removal")},
            }
        )
    return {"people": people, "model": model, "reviews": found}


def fig_5(records: Records) -> Table:
    return _pictured(
        "Fig. 5, 10, 11: values and importances of reviews",
        records,
        "The bundled classifier, SLALOM with anchor; with two layers, by SLALOM-eff: `fig-11`.",
    )


def fig_11(records: Records) -> Table:
    return _pictured(
        "Fig. 5, 11: values and importances, a BERT and a GPT-2 of two layers",
        records,
        "SLALOM-eff as in the paper; models 128 wide with four heads, of our own training (the "
        "paper: 768 wide, twelve heads, in its table 5 six).",
    )


def _pictured(title: str, records: Records, differs: str) -> Table:
    rows: list[tuple[Cell, ...]] = []
    panels = []
    for record in records.values():
        for number, review in enumerate(record["reviews"], start=1):
            where = f"{'restaurant' if record['people'] else 'film'} review {number}"
            if (model := record.get("model", "bundled")) != "bundled":
                where = f"{model}, {where}"
            told = (review["target"], _text(review, record["people"]))
            rows.append((where, *told, *_of_strong_words(review["scores"])))
            panels.append(_plane(f"{where}: {review['target']}", review, record["people"]))
    return Table(
        title=title,
        columns=(
            "review",
            "predicted",
            "text: **loud** words, _marked_ by all annotators",
            "importance of words that change most, less that of others",
            "share of them whose value has the sign of the change",
        ),
        rows=tuple(rows),
        differs=(differs,),
        notes=(
            "Bold is the eighth of the words with the highest importance. Values are log-odds of "
            "the predicted class. The words that change most are the eighth whose removal moves "
            "the log-odds most, by the fit.",
        ),
        panels=tuple(panels),
    )


def _of_strong_words(scores: Mapping[str, list[float]]) -> tuple[Number, Number]:
    """How loud the words with large effects are, and how often their values have the right sign."""
    value, importance, removal = (np.array(scores[n]) for n in ("value", "importance", "removal"))
    n_strong = max(1, len(removal) // 8)
    strong, rest = np.split(np.argsort(-np.abs(removal), kind="stable"), [n_strong])
    louder = importance[strong].mean() - importance[rest].mean()
    alike = (value * removal)[strong] > 0
    return Number(float(louder), digits=2), Number(float(alike.mean()), digits=2)


def _text(review: Record, people: bool) -> str:
    """The words, loud ones bold, those that people marked in italics."""
    importance = np.array(review["scores"]["importance"])
    loud = importance >= np.sort(importance)[-max(1, len(importance) // 8)]
    words = []
    for unit, is_loud, is_marked in zip(review["units"], loud, review["marked"], strict=True):
        word = unit.strip().replace("|", "/").replace("*", "").replace("_", "")
        word = f"_{word}_" if people and is_marked and word else word
        words.append(f"**{word}**" if is_loud and word else word)
    return " ".join(words)


def _plane(title: str, review: Record, people: bool) -> Panel:
    values, importances = (np.array(review["scores"][n]) for n in ("value", "importance"))
    groups = [("words", np.ones(len(values), dtype=bool))]
    if people:
        marked = np.array(review["marked"], dtype=bool)
        groups = [("marked by people", marked), ("others", ~marked)]
    series = [points(n, values[rows], importances[rows], joined=False) for n, rows in groups]
    top = np.argsort(-importances)[:N_NAMED]
    named = Series(
        "",
        tuple(values[top]),
        tuple(importances[top]),
        joined=False,
        marks=tuple(review["units"][at] for at in top),
    )
    return Panel(title, "value (log-odds)", "importance", (*series, named))
