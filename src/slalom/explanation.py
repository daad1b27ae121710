"""The result of explaining one text, and the JSON format that every part of the project shares.

An Explanation carries the fitted model, so metrics and views can ask it what it would
predict for any subset of the units without knowing which method made it.
"""

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np

from slalom.answer import Answer
from slalom.classifiers.base import Target
from slalom.document import BoolArray, FloatArray, IntArray, Span, Text
from slalom.errors import DamageError, InputError, NoModelError, UnknownNameError
from slalom.files import Format, write_json, write_whole
from slalom.pairs import Interactions
from slalom.schema import Within, check_below, plain, read_as
from slalom.surrogates.additive import GamModel, LinearModel
from slalom.surrogates.base import Model
from slalom.surrogates.boosted import TreesModel
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.process import ProcessModel

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from slalom.language.citations import Citation
    from slalom.metrics.counterfactual import Counterfactual
    from slalom.views.without import WhatIf

AnyModel = SlalomModel | ProcessModel | LinearModel | GamModel | TreesModel
LOST_MODEL = "saved by an earlier version: what the fit would predict of a subset is not known"
EARLIER_MODELS = ("slalom-nearby", "slalom-corrected", "slalom-completed")  # opened without them
HIGH_TRUST, FAIR_TRUST = 0.9, 0.6
CLEAR, LENIENT = 2.0, 0.1  # R² less so many standard errors may fall short of a bar by so much
Number = float | FloatArray  # a log-odds; one per class where all are explained
Scores = dict[str, Number]  # of one unit, by name
PARQUET = b"PAR1"  # how such files begin


@dataclass(frozen=True)
class Quality:
    """How far the explanation can be trusted, and what it cost."""

    r2: float | None  # leave-one-out: the share of the classifier's behaviour that is described
    rmse: float | None  # leave-one-out, in log-odds
    n_queries: Annotated[int, Within(0)]  # distinct queries asked
    n_tokens: Annotated[int, Within(0)]  # tokens that went through the model
    seconds: Annotated[float, Within(0)]  # of asking and fitting
    trust: Annotated[str, Literal["exact", "high", "fair", "low"]]  # the word for it
    notes: tuple[str, ...] = ()  # sentences: what a reader must know besides
    parts: dict[str, float] = field(default_factory=dict)  # of the model → share it describes
    r2_error: float | None = None  # standard error of R²: with few answers it is partly chance
    two_scores: float | None = None  # R² of value and importance alone, beside r2 of the whole
    n_repeats: Annotated[int, Within(0)] = 0  # of the queries: asked before, to see what it repeats


def trust_of(r2: float | None, r2_error: float | None = None) -> str:
    """The word for a leave-one-out R² that is not likely to be much lower in truth."""
    if r2 is None:
        return "low"
    at_least = r2 - CLEAR * (r2_error or 0.0)
    words = (("high", HIGH_TRUST), ("fair", FAIR_TRUST))
    return next((w for w, bar in words if r2 >= bar and at_least >= bar - LENIENT), "low")


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The scores of every unit of a text, with their errors and how far to trust them.

    e.top(5)                     # the strongest words with their scores
    e["awful"]["removal"]        # one word's scores, by name
    e.scores["shapley"]          # (n_units,) one score of all units, beside e.units; e.errors
    e.quality.trust              # and r2, n_queries, seconds, notes
    e.to_frame(), e.plot(), e.to_html("page.html"), e.save("explanation.json")
    e.without("awful")           # what would be predicted without it, with no further query
    """

    text: Text  # as it was given: a str, or a pair of them
    units: Annotated[tuple[str, ...], "units"]  # what has a score, in the order of the text
    spans: Annotated[tuple[Span, ...], "units"]  # (start, end); in a pair (side, start, end)
    features: Annotated[IntArray, "units"]  # units with equal numbers share value and importance
    scores: dict[str, Annotated[FloatArray, "units labels?"]]  # one column, or one per class
    errors: dict[str, Annotated[FloatArray, "units labels?", Within(0)]]  # standard errors, or {}
    identified: Annotated[BoolArray, "units"]  # False: the score is 0 and means nothing
    anchor: Anchor | None  # what is always shown; None: the method has none
    quality: Quality  # how far to trust it, and what it cost
    logits: Annotated[FloatArray, "labels"]  # of the full text
    labels: Annotated[tuple[str, ...], "labels"]  # of all classes
    target: str  # the label explained, or "all"
    target_index: int | None  # None: all
    method: str  # its name in slalom.METHODS
    seed: Annotated[int, Within(0)]  # of the random queries
    classifier: str  # its name, in words
    independent: bool = False  # labels do not compete: multi-label, regression
    primary_score: str | None = None  # the score to look at first; None: whatever a view prefers
    model: Annotated[Model | None, AnyModel | None] = None  # over units; None: nothing to predict
    measured: dict[str, Annotated[BoolArray, "units"]] = field(default_factory=dict)  # asked?
    whole: Annotated[Number | None, "labels"] = None  # by the fit, less any process; None: no model
    base: Annotated[Number | None, "labels"] = None  # the score of the empty text; None: unknown
    base_measured: bool = False  # the empty text was asked, not fitted
    length_curve: Annotated[FloatArray | None, "units+1 labels?"] = None  # of 0 … n; None: no part
    length_errors: Annotated[FloatArray | None, "units+1 labels?", Within(0)] = None  # of it
    windowed: bool = False  # the text is longer than the model reads, and was read in windows
    pairs: Interactions | None = None  # words that act together; None: nobody looked
    said: Answer | None = None  # by a language model, if that is what is explained

    def check(self) -> None:
        """What a file may say beyond types and sizes; ValueError where nothing could be shown."""
        check_explanation(self)

    def target_scores(self, logits: FloatArray) -> FloatArray:
        """(k, n_classes) logits on the scale of the scores: (k,), or (k, n_classes) of all."""
        target = Target(self.target_index, self.target)
        return target.scores(logits, independent=self.independent)

    def is_measured(self, name: str) -> BoolArray:
        """(n_units,) where a score is the classifier's own answer; a name not there: nowhere."""
        return self.measured.get(name, np.zeros(len(self.units), dtype=bool))

    def predict(self, present: object) -> FloatArray:
        """What the surrogate predicts for subsets: (k, n_units) of 0/1 → (k,) log-odds.

        A subset that `slalom` has queried gets the classifier's own answer.
        """
        if self.model is None:
            raise NoModelError(
                f"this explanation by {self.method!r} has no model to predict with: predict needs "
                "a surrogate such as 'slalom' or 'linear', and JSON where it was saved"
            )
        try:
            marks = np.asarray(present, dtype=np.float64)
        except (TypeError, ValueError) as problem:
            raise InputError(f"predict takes a matrix of 0 and 1: {problem}") from problem
        if marks.ndim != 2 or marks.shape[1] != len(self.units):
            raise InputError(
                f"predict was given shape {marks.shape}: expected (k, {len(self.units)}), "
                "one row per subset and one 0/1 column per unit"
            )
        if not np.isin(marks, (0.0, 1.0)).all():
            raise InputError("predict takes 0 (absent) and 1 (present) only")
        return self.model.predict(marks * self.identified)

    def __len__(self) -> int:
        """The number of units."""
        return len(self.units)

    def __iter__(self) -> Iterator[tuple[str, Scores]]:
        """(unit, its scores by name), in the order of the text."""
        return ((unit, self._scores_of(at)) for at, unit in enumerate(self.units))

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and word.strip() in map(str.strip, self.units)

    def __getitem__(self, which: str | int) -> Scores:
        """The scores of a unit by name: given its number, or the word where its scores are one."""
        places = self.places(which)
        first = self._scores_of(places[0])
        if any(_differ(first, self._scores_of(at)) for at in places[1:]):
            numbers = ", ".join(map(str, places))
            raise InputError(
                f"{which!r} occurs {len(places)} times with different scores: "
                f"give the number of one ({numbers})"
            )
        return first

    def _scores_of(self, at: int) -> Scores:
        return {
            name: float(score[at]) if score.ndim == 1 else score[at]
            for name, score in self.scores.items()
        }

    def places(self, which: str | int) -> list[int]:
        """The numbers of all units that are spelled so; a number stands for itself."""
        if isinstance(which, str):
            found = [at for at, unit in enumerate(self.units) if unit.strip() == which.strip()]
            if not found:
                raise UnknownNameError("unit", which, dict.fromkeys(map(str.strip, self.units)))
            return found
        if isinstance(which, bool) or not isinstance(which, int | np.integer):
            raise InputError(f"a word is needed, or the number of a unit, not {which!r}")
        if not -len(self) <= which < len(self):
            raise InputError(f"unit {which} is out of range: there are {len(self)} units")
        return [int(which) % len(self)]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write versioned JSON, or a page where the name ends in .html; complete or not at all."""
        ending = Path(str(path)).suffix.lower()
        if ending in (".png", ".svg", ".pdf"):
            raise InputError(f"save writes JSON or a page, not {ending}: use plot().savefig(…)")
        if ending in (".html", ".htm"):
            self.to_html(path)
        else:
            write_json(path, self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types; the one format of the command line, the page and the corpus."""
        record = {field.name: plain(getattr(self, field.name)) for field in fields(self)}
        record["target"] = {"index": record.pop("target_index"), "label": self.target}
        for name in ("pairs", "said"):
            if record[name] is None:
                del record[name]
        return FILES.stamped(record)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Explanation":
        """The inverse of to_json; of an earlier version, what it does not tell is unknown."""
        made, model = read_as(cls, upgraded(record)), record.get("model")
        if made.model is None and model is not None:
            notes = (*made.quality.notes, LOST_MODEL)
            return replace(made, quality=replace(made.quality, notes=notes))
        return made

    def __eq__(self, other: object) -> bool:
        """Equal in everything but the seconds it took."""
        if not isinstance(other, Explanation):
            return NotImplemented
        return _timeless(self) == _timeless(other)

    __hash__ = None  # type: ignore[assignment]  # arrays inside; equality is by content

    # What follows shows an explanation or asks on: the only imports that point upwards.

    def to_html(
        self, path: str | os.PathLike[str] | None = None, scale: str = "log-odds"
    ) -> str | None:
        """One page that loads nothing: written to `path`, or returned where none is given.

        `scale="probability"` opens it with changes of the predicted probability.
        """
        from slalom.views.html import page

        if path is None:
            return page(self, scale)
        write_whole(path, page(self, scale))
        return None

    def top(self, k: int = 10, score: str | None = None) -> list[tuple[str, float]]:
        """The k strongest units with their scores, those clearly different from zero first."""
        from slalom.views.reading import strongest

        return strongest(self, k, score)

    def to_frame(self, scale: str = "log-odds") -> "pandas.DataFrame":
        """One row per unit: its place, every score, its error, whether it was measured.

        `scale="probability"` tells scores as changes of the predicted probability.
        """
        from slalom.tables import to_frame

        return to_frame([self], scale).drop(columns="document")

    def plot(self, score: str | None = None, scale: str = "log-odds") -> "Figure":
        """The strongest units as bars with their errors: a matplotlib figure."""
        from slalom.views.plots import plot_units

        return plot_units(self, score, scale)

    def without(self, *which: str | int) -> "WhatIf":
        """The prediction without these words or units, with no query: measured, or estimated."""
        from slalom.views.without import without

        return without(self, which)

    def counterfactual(self, classifier: Any = None) -> "Counterfactual":
        """Words whose removal changes the prediction; without a classifier, an estimate."""
        from slalom.metrics.counterfactual import counterfactual

        return counterfactual(self, classifier)

    def interactions(
        self, k: int = 10, classifier: Any = None, n_queries: int = 200
    ) -> Interactions:
        """The k pairs of words that act together most; measured, if there is a classifier."""
        from slalom.metrics.interactions import interactions

        return interactions(self, k, classifier, n_queries=n_queries)

    def with_pairs(self, k: int = 10, classifier: Any = None) -> "Explanation":
        """The same with its k strongest pairs: every view draws them, and files keep them."""
        return replace(self, pairs=self.interactions(k, classifier))

    @property
    def answer(self) -> str | None:
        """What the language model said; None: a classifier is explained."""
        return None if self.said is None else self.said.text

    def of(self, part: "str | Sequence[int]") -> "Explanation":
        """The same for a part of the answer, words of it or a span, with no further query."""
        from slalom.language.citations import of_part

        return of_part(self, part)

    def cite(self, k: int = 3) -> "tuple[Citation, ...]":
        """Each sentence of the answer with the sources that carry it, at most k."""
        from slalom.language.citations import cite

        return cite(self, k)

    def __repr__(self) -> str:
        from slalom.views.brief import brief

        return brief(self)

    def _repr_html_(self) -> str:
        from slalom.views.html import fragment

        return fragment(self)


def read(path: str | os.PathLike[str]) -> Any:
    """The explanation that `save` wrote; of a Parquet file of documents a list, one per row.

    A row that could not be explained is the SlalomError that says why.
    """
    if _is_parquet(path):
        from slalom.tables import documents_in

        return list(documents_in(path))
    return FILES.read(path)


def _is_parquet(path: str | os.PathLike[str]) -> bool:
    try:
        with Path(path).open("rb") as file:
            return file.read(len(PARQUET)) == PARQUET
    except (OSError, TypeError, ValueError):
        return False  # said by whoever reads it


FILES = Format("slalom-explanation", 3, "an explanation", Explanation.from_json)


def with_target(record: dict[str, Any]) -> dict[str, Any]:
    """The target's label and index as fields of their own."""
    target = read_as(_TargetRecord, record.get("target"), "target")
    return {**record, "target": target.label, "target_index": target.index}


def upgraded(record: dict[str, Any]) -> dict[str, Any]:
    """A record as fields of an Explanation, files of earlier versions included."""
    if not isinstance(record, dict):
        raise DamageError(f"expected an object, not {type(record).__name__}")
    record = with_target(record)
    if "shown" in record:  # its name in files of the first days
        record.setdefault("primary_score", record["shown"])
    if isinstance(record.get("pairs"), dict):
        record["pairs"] = {**record["pairs"], "spans": record.get("spans")}
    if isinstance(record.get("model"), dict) and record["model"].get("kind") in EARLIER_MODELS:
        record["model"] = None
    return record


@dataclass(frozen=True)
class _TargetRecord:
    label: str
    index: int | None


def check_explanation(explanation: Explanation) -> None:
    """Whatever passes can be shown, saved and asked; the first thing that cannot is named."""
    e, of_class = explanation, explanation.target_index
    if not e.units or not e.scores:
        raise ValueError("expected at least one unit and one score")
    _check_spans(e)
    check_below(e.features, len(e.units), "features")
    if e.target != _target_name(e):
        raise ValueError(f"target: {e.target!r} is not the class {of_class} of {len(e.labels)}")
    if e.primary_score not in (None, *e.scores):
        raise ValueError(f"primary_score: there is no score {e.primary_score!r}")
    for name, score in e.scores.items():
        if of_class is not None and score.ndim > 1:
            raise ValueError(f"scores.{name}: expected one column, for one class")
    if "share" in e.scores and e.scores["share"].min() < 0:
        raise ValueError("scores.share: a share of the attention is not negative")
    for name, error in e.errors.items():
        if name not in e.scores or error.shape != e.scores[name].shape:
            raise ValueError(f"errors.{name}: there is no score of the same shape")
    shape = () if of_class is not None else (len(e.labels),)
    anchor = None if e.anchor is None else e.anchor.value
    for what, number in {"whole": e.whole, "base": e.base, "anchor.value": anchor}.items():
        if number is not None and np.shape(number) != shape:
            per = " per class" if shape else ""
            raise ValueError(f"{what}: expected one number{per}")
    _check_model(e, shape)


def _target_name(explanation: Explanation) -> str | None:
    at, labels = explanation.target_index, explanation.labels
    return "all" if at is None else labels[at] if 0 <= at < len(labels) else None


def _check_spans(explanation: Explanation) -> None:
    """Each lies in the text, and after the one before it."""
    sides = explanation.text if isinstance(explanation.text, tuple) else (explanation.text,)
    reached = [0] * len(sides)
    for span in explanation.spans:
        side, start, end = span if len(sides) == 2 and len(span) == 3 else (0, *span)
        if not 0 <= side < len(sides) or not reached[side] <= start <= end <= len(sides[side]):
            raise ValueError(f"spans: {span} lies outside of the text or before another one")
        reached[side] = end


def _check_model(explanation: Explanation, shape: tuple[int, ...]) -> None:
    """It has something to say of any subset: tried on the empty text and the whole."""
    if explanation.model is None:
        return
    n_units = len(explanation.units)
    with np.errstate(all="ignore"):
        said = explanation.predict(np.vstack([np.zeros(n_units), np.ones(n_units)]))
    if said.shape != (2, *shape) or not np.isfinite(said).all():
        raise ValueError("model: its predictions are no scores")


def _differ(one: Scores, other: Scores) -> bool:
    return any(not np.allclose(one[name], other[name], rtol=0, atol=1e-9) for name in one)


def _timeless(explanation: Explanation) -> dict[str, Any]:
    record = explanation.to_json()
    del record["quality"]["seconds"]
    return record
