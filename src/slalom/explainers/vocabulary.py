"""One table over a corpus: the value and importance of every token, whatever text it stands in.

A Vocabulary is a SLALOM whose values and importances are shared by all documents (the paper's
global explanation). Tokens that too few documents hold share one entry, `rare`. As a prior it
lets the explanation of a single text start from what is known of its tokens.
"""

import os
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Annotated, Any, ClassVar

import numpy as np

from slalom.document import Document, FloatArray, IntArray
from slalom.errors import InputError, UnknownNameError
from slalom.explainers.base import Plan, Request, noted
from slalom.explainers.surrogate import FollowUpPlan, QueryBudget, SurrogateExplainer
from slalom.explanation import Quality, with_target
from slalom.files import Format, write_json
from slalom.samplers.subsets import SubsetSizes
from slalom.schema import Within, plain, read_as
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.model import Anchor, Prior

COLUMNS = ("value", "importance", "documents")


@dataclass(frozen=True)
class Entry:
    """One row of the table; errors are standard errors."""

    token: str
    value: float
    importance: float
    value_error: float
    importance_error: float
    documents: int  # how many contain it


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """Values and importances of tokens, fitted over many documents."""

    tokens: Annotated[tuple[str, ...], "tokens"]  # as they are written
    keys: Annotated[tuple[Hashable, ...], "tokens"]  # what the classifier sees of each
    scores: dict[str, Annotated[FloatArray, "tokens"]]  # "value" and "importance"
    errors: dict[str, Annotated[FloatArray, "tokens", Within(0)]]  # standard errors
    counts: Annotated[IntArray, "tokens", Within(0)]  # how many documents contain each
    rare: Anchor | None  # value and importance shared by all other tokens
    anchor: Anchor | None  # what is always shown
    quality: Quality  # r2 and rmse are of held-out documents
    n_documents: Annotated[int, Within(0)]  # that were asked about
    labels: tuple[str, ...]  # of all classes
    target: str  # the label that values speak for
    target_index: int  # its place among the labels
    classifier: str  # its name, in words
    units: str | None  # what a token is: "word" (None, too), "token" or "sentence"
    seed: Annotated[int, Within(0)]  # of the random queries

    def __len__(self) -> int:
        return len(self.tokens)

    def __repr__(self) -> str:
        from slalom.views.vocabulary import brief

        return brief(self)

    def _repr_html_(self) -> str:
        from slalom.views.vocabulary import fragment

        return fragment(self)

    def table(self, by: str = "value", least_documents: int = 1) -> list[Entry]:
        """One row per token, the highest first."""
        if by not in COLUMNS:
            raise UnknownNameError("column", by, COLUMNS)
        order = np.argsort(-(self.counts if by == "documents" else self.scores[by]), kind="stable")
        entries = [self._entry(int(row)) for row in order]
        return [entry for entry in entries if entry.documents >= least_documents]

    def __getitem__(self, token: str) -> Entry:
        """A token by its text; the one in most documents where several are written alike."""
        rows = [row for row, text in enumerate(self.tokens) if text == token]
        if not rows:
            raise UnknownNameError("token", token, [*sorted(self.tokens)[:20], "…"])
        return self._entry(max(rows, key=lambda row: int(self.counts[row])))

    def _entry(self, row: int) -> Entry:
        return Entry(
            self.tokens[row],
            float(self.scores["value"][row]),
            float(self.scores["importance"][row]),
            float(self.errors["value"][row]),
            float(self.errors["importance"][row]),
            int(self.counts[row]),
        )

    def method(self) -> "FromVocabulary":
        """A method for `explain` whose prior means are the values and importances of this table."""
        return FromVocabulary(self)

    def prior(self, keys: Sequence[Hashable]) -> Prior:
        """Prior means of features with these keys; NaN for tokens that the table does not have."""
        rows = {key: row for row, key in enumerate(self.keys)}
        at = np.array([rows.get(key, len(self.keys)) for key in keys])
        values, importances = (
            np.append(self.scores[name], np.nan)[at] for name in ("value", "importance")
        )
        return Prior(values, importances, 0.0 if self.anchor is None else self.anchor.importance)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write versioned JSON; the file is complete or not there at all."""
        write_json(path, self.to_json())

    def to_json(self) -> dict[str, Any]:
        record = {each.name: plain(getattr(self, each.name)) for each in fields(self)}
        record["target"] = {"index": record.pop("target_index"), "label": self.target}
        return FILES.stamped(record)

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Vocabulary":
        return read_as(cls, with_target(record))

    def check(self) -> None:
        if not {"value", "importance"} <= self.scores.keys() & self.errors.keys():
            raise ValueError("scores: expected value and importance, and their errors")
        if not 0 <= self.target_index < len(self.labels):
            raise ValueError(f"target: {len(self.labels)} labels have no {self.target_index}")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Vocabulary":
        """Read a vocabulary that `save` wrote."""
        return FILES.read(path)

    def __eq__(self, other: object) -> bool:
        """Equal in everything but the seconds it took."""
        if not isinstance(other, Vocabulary):
            return NotImplemented
        mine, others = self.to_json(), other.to_json()
        del mine["quality"]["seconds"], others["quality"]["seconds"]
        return mine == others

    __hash__ = None  # type: ignore[assignment]  # arrays inside; equality is by content


FILES = Format("slalom-vocabulary", 1, "a vocabulary", Vocabulary.from_json)


@dataclass(frozen=True)
class FromVocabulary:
    """SLALOM over random subsets, values and importances shrinking towards a vocabulary's.

    It takes two thirds of the queries of 'slalom' (docs/vocabulary.md).
    """

    vocabulary: Vocabulary
    name: str = "slalom-prior"
    summary: str = "SLALOM whose prior is a vocabulary: for few queries"
    budget: QueryBudget = field(default=QueryBudget(200, per_unit=10 / 3, maximum=2000))
    looks_inside: ClassVar[bool] = False
    has_shapley_errors: ClassVar[bool] = True

    def plan(self, document: Document, request: Request) -> Plan:
        """The target is that of the vocabulary, whose values are its log-odds."""
        table = self.vocabulary
        if request.target not in (None, table.target, table.target_index):
            raise InputError(
                f"the vocabulary was made for the target {table.target!r}, not {request.target!r}: "
                "make another with that target"
            )
        first = np.unique(document.features, return_index=True)[1]
        prior = table.prior([document.keys[unit] for unit in first])
        method = SurrogateExplainer(
            self.name,
            self.summary,
            SubsetSizes(),
            SlalomSurrogate(prior=prior),
            self.budget,
            follow_up=FollowUpPlan(),
        )
        found = yield from method.plan(document, replace(request, target=table.target_index))
        self.check(found.classifier, found.labels)
        keys = set(document.keys)
        return noted(
            found,
            f"starts from a vocabulary of {table.n_documents} documents, which knows "
            f"{len(keys & set(table.keys))} of {len(keys)} units",
        )

    def check(self, name: str, labels: tuple[str, ...]) -> None:
        """Whether the vocabulary is of a classifier with these labels."""
        known = self.vocabulary.labels
        if labels != known:
            raise InputError(
                f"the vocabulary is of a classifier with labels {', '.join(known)}, "
                f"{name} has {', '.join(labels)}: make one for it"
            )
