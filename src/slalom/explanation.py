"""The result of explaining one text, and the JSON format that every part of the project shares.

An Explanation carries the fitted model, so metrics and views can ask it what it would
predict for any subset of the units without knowing which method made it.
"""

import os
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray, Span, Text
from slalom.errors import InputError, NoModelError
from slalom.files import Format, write_json
from slalom.pairs import Interactions
from slalom.surrogates.base import Model
from slalom.surrogates.gam import GamModel
from slalom.surrogates.linear import LinearModel
from slalom.surrogates.slalom.completed import CompletedModel
from slalom.surrogates.slalom.corrected import CorrectedModel
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.trees import TreesModel

if TYPE_CHECKING:
    import pandas
    from matplotlib.figure import Figure

    from slalom.metrics.counterfactual import Counterfactual

MODELS = {
    model.kind: model
    for model in (SlalomModel, CompletedModel, CorrectedModel, LinearModel, GamModel, TreesModel)
} | {"slalom-nearby": CorrectedModel}  # its name in earlier files
HIGH_TRUST, FAIR_TRUST = 0.9, 0.6
CLEAR, LENIENT = 2.0, 0.1  # R² less so many standard errors may fall short of a bar by so much
Number = float | FloatArray  # a log-odds; one per class where all are explained


@dataclass(frozen=True)
class Quality:
    """How far the explanation can be trusted, and what it cost."""

    r2: float | None  # leave-one-out: the share of the classifier's behaviour that is described
    rmse: float | None  # leave-one-out, in log-odds
    n_queries: int  # distinct queries asked
    n_tokens: int  # tokens that went through the model
    seconds: float  # of asking and fitting
    trust: str  # "exact", "high", "fair" or "low"
    notes: tuple[str, ...] = ()  # sentences: what a reader must know besides
    parts: dict[str, float] = field(default_factory=dict)  # of the model → share it describes
    r2_error: float | None = None  # standard error of R²: with few answers it is partly luck


def trust_of(r2: float | None, r2_error: float | None = None) -> str:
    """The word for a leave-one-out R² that is not likely to be much lower in truth."""
    if r2 is None:
        return "low"
    at_least = r2 - CLEAR * (r2_error or 0.0)
    words = (("high", HIGH_TRUST), ("fair", FAIR_TRUST))
    return next((w for w, bar in words if r2 >= bar and at_least >= bar - LENIENT), "low")


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """What every unit of a text says and how loudly it says it."""

    text: Text  # as it was given: a str, or a pair of them
    units: tuple[str, ...]  # what has a score, in the order of the text
    spans: tuple[Span, ...]  # (start, end) of each in the text; (side, start, end) in a pair
    features: IntArray  # (n_units,) units with equal numbers share value and importance
    scores: dict[str, FloatArray]  # name → (n_units,), or (n_units, n_classes) for all classes
    errors: dict[str, FloatArray]  # standard errors, same shapes; {} where a method has none
    identified: BoolArray  # (n_units,) False: the score is 0 and means nothing
    anchor: Anchor | None  # what is always shown; None: the method has none
    quality: Quality  # how far to trust it, and what it cost
    logits: FloatArray  # (n_classes,) of the full text
    labels: tuple[str, ...]  # of all classes
    target: str  # the label explained, or "all"
    target_index: int | None  # None: all
    method: str  # its name in slalom.METHODS
    seed: int  # of the random queries
    classifier: str  # its name, in words
    independent: bool = False  # labels do not compete: multi-label, regression
    primary_score: str | None = None  # the score to look at first; None: whatever a view prefers
    model: Model | None = field(default=None, repr=False)  # over units; None: nothing to predict
    measured: dict[str, BoolArray] = field(default_factory=dict)  # score → (n_units,) asked?
    determined: FloatArray | None = None  # (n_units,) 0…1: data, not prior; None: unknown
    whole: Number | None = None  # what the fit says of the whole text; None: no model
    base: Number | None = None  # the score of the empty text; None: unknown
    base_measured: bool = False  # the empty text was asked, not fitted
    length_curve: FloatArray | None = None  # (n_units + 1,) of 0 … n units; None: no such part
    length_errors: FloatArray | None = None  # its standard errors, same shape; None: unknown
    windowed: bool = False  # the text is longer than the model reads, and was read in windows
    pairs: Interactions | None = None  # words that act together; None: nobody looked

    def is_measured(self, name: str) -> BoolArray:
        """(n_units,) where a score is the classifier's own answer; a name not there: nowhere."""
        return self.measured.get(name, np.zeros(len(self.units), dtype=bool))

    def predict(self, present: object) -> FloatArray:
        """What the surrogate says of subsets: (k, n_units) of 0/1 → (k,) log-odds."""
        if self.model is None:
            raise NoModelError(
                f"method {self.method!r} scores units but models no subset: "
                "predict needs a surrogate such as 'slalom' or 'linear'"
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

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write versioned JSON; the file is complete or not there at all."""
        write_json(path, self.to_json())

    def to_json(self) -> dict[str, Any]:
        """Plain JSON types; the one format of the command line, the page and the corpus."""
        model = self.model and {"kind": self.model.kind, **self.model.to_json()}
        record = {
            "text": self.text,
            "units": list(self.units),
            "spans": [list(span) for span in self.spans],
            "features": self.features.tolist(),
            "scores": {name: score.tolist() for name, score in self.scores.items()},
            "errors": {name: error.tolist() for name, error in self.errors.items()},
            "identified": self.identified.tolist(),
            "anchor": self.anchor and asdict(self.anchor),
            "quality": asdict(self.quality),
            "logits": self.logits.tolist(),
            "labels": list(self.labels),
            "target": {"index": self.target_index, "label": self.target},
            "method": self.method,
            "seed": self.seed,
            "classifier": self.classifier,
            "independent": self.independent,
            "primary_score": self.primary_score,
            "model": model,
            "measured": {name: marks.tolist() for name, marks in self.measured.items()},
            "determined": _plain(self.determined),
            "whole": _plain(self.whole),
            "base": _plain(self.base),
            "base_measured": self.base_measured,
            "length_curve": _plain(self.length_curve),
            "length_errors": _plain(self.length_errors),
            "windowed": self.windowed,
            **({} if self.pairs is None else {"pairs": self.pairs.to_json()}),
        }
        return FILES.stamped(record)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Explanation":
        """The inverse of to_json; of a version 1 file, what it does not tell is unknown."""
        text, anchor, quality = record["text"], record["anchor"], record["quality"]
        if anchor is not None:
            value = anchor["value"]
            anchor = Anchor(
                tuple(value) if isinstance(value, list) else value, anchor["importance"]
            )
        return cls(
            text=tuple(text) if isinstance(text, list) else text,
            units=tuple(record["units"]),
            spans=tuple(tuple(span) for span in record["spans"]),
            features=np.array(record["features"], dtype=np.int32),
            scores={name: np.array(score, float) for name, score in record["scores"].items()},
            errors={name: np.array(error, float) for name, error in record["errors"].items()},
            identified=np.array(record["identified"], dtype=bool),
            anchor=anchor,
            quality=Quality(**{**quality, "notes": tuple(quality["notes"])}),
            logits=np.array(record["logits"], dtype=float),
            labels=tuple(record["labels"]),
            target=record["target"]["label"],
            target_index=record["target"]["index"],
            method=record["method"],
            seed=record["seed"],
            classifier=record["classifier"],
            independent=record.get("independent", False),  # files of the first days lack these
            primary_score=record.get("primary_score", record.get("shown")),
            model=_model_from_json(record["model"]),
            **_since_version_2(record),
        )

    def __eq__(self, other: object) -> bool:
        """Equal in everything but the seconds it took."""
        if not isinstance(other, Explanation):
            return NotImplemented
        return _timeless(self) == _timeless(other)

    __hash__ = None  # type: ignore[assignment]  # arrays inside; equality is by content

    # What follows shows an explanation or asks on: the only imports that point upwards.

    def to_frame(self) -> "pandas.DataFrame":
        """One row per unit: its place, every score, its error, whether it was measured."""
        from slalom.tables import to_frame

        return to_frame([self]).drop(columns="document")

    def plot(self, score: str | None = None) -> "Figure":
        """The strongest units as bars with their errors: a matplotlib figure."""
        from slalom.views.plots import plot_units

        return plot_units(self, score)

    def counterfactual(self, classifier: Any = None) -> "Counterfactual":
        """The words to remove so that the prediction turns; without a classifier it is a guess."""
        from slalom.metrics.counterfactual import counterfactual

        return counterfactual(self, classifier)

    def interactions(
        self, k: int = 10, classifier: Any = None, n_queries: int = 200
    ) -> Interactions:
        """The k pairs of words that act together most; asked, if there is a classifier."""
        from slalom.metrics.interactions import interactions

        return interactions(self, k, classifier, n_queries=n_queries)

    def with_pairs(self, k: int = 10, classifier: Any = None) -> "Explanation":
        """The same with its k strongest pairs: every view draws them, and files keep them."""
        return replace(self, pairs=self.interactions(k, classifier))

    def __repr__(self) -> str:
        from slalom.views.brief import brief

        return brief(self)

    def _repr_html_(self) -> str:
        from slalom.views.html import fragment

        return fragment(self)


def read(path: str | os.PathLike[str]) -> Explanation:
    """Read an explanation that `save` wrote."""
    return FILES.read(path)


def _parsed(record: dict[str, Any]) -> Explanation:
    explanation = Explanation.from_json(record)
    _check_shapes(explanation)
    return explanation


FILES = Format("slalom-explanation", 2, "an explanation", _parsed)


def _check_shapes(explanation: Explanation) -> None:
    """A file whose parts do not fit together is damaged, whatever its JSON says."""
    n_units = len(explanation.units)
    parts: list[tuple[str, int]] = [
        ("spans", len(explanation.spans)),
        ("features", len(explanation.features)),
        ("identified", len(explanation.identified)),
        *((name, len(score)) for name, score in explanation.scores.items()),
        *((f"error of {name}", len(error)) for name, error in explanation.errors.items()),
        *((f"measured {name}", len(marks)) for name, marks in explanation.measured.items()),
    ]
    if explanation.determined is not None:
        parts.append(("determined", len(explanation.determined)))
    for name in ("length_curve", "length_errors"):
        if (sizes := getattr(explanation, name)) is not None:
            parts.append((name, len(sizes) - 1))
    for name, length in parts:
        if length != n_units:
            raise ValueError(f"{n_units} units but {length} entries in {name}")


def _model_from_json(record: dict[str, Any] | None) -> Model | None:
    return None if record is None else cast(Model, MODELS[record["kind"]].from_json(record))


def _since_version_2(record: dict[str, Any]) -> dict[str, Any]:
    """What files of version 1 do not have."""
    measured, pairs = record.get("measured", {}), record.get("pairs")
    return {
        "pairs": pairs and Interactions.from_json(pairs, [tuple(s) for s in record["spans"]]),
        "measured": {name: np.array(marks, dtype=bool) for name, marks in measured.items()},
        "base_measured": record.get("base_measured", False),
        "windowed": record.get("windowed", False),
        **{
            name: _number(record.get(name))
            for name in ("determined", "whole", "base", "length_curve", "length_errors")
        },
    }


def _number(plain: list[Any] | float | None) -> Any:
    return np.array(plain, dtype=float) if isinstance(plain, list) else plain


def _plain(number: Number | None) -> Any:
    return number.tolist() if isinstance(number, np.ndarray) else number


def _timeless(explanation: Explanation) -> dict[str, Any]:
    record = explanation.to_json()
    del record["quality"]["seconds"]
    return record
