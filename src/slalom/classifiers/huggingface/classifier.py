"""Any Hugging Face sequence classifier, encoder or decoder, with a fast tokenizer.

This part knows tokens, special tokens, devices and batches. Everything about them comes from
the tokenizer and the model, and both come back exactly as they were.
"""

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from transformers import PreTrainedModel

from slalom.classifiers.base import Units, checked_logits, checked_text, described
from slalom.classifiers.fingerprint import fingerprint
from slalom.classifiers.huggingface.batching import TokenRows, answered, joined, seen_rows
from slalom.classifiers.huggingface.calls import (
    answers,
    checked_precision,
    context_length,
    device_of,
    in_precision,
    name_of,
)
from slalom.classifiers.huggingface.encoding import Encoded, document_of
from slalom.classifiers.huggingface.outline import Outline
from slalom.classifiers.huggingface.tokenizing import checked_tokenizer, encode, with_fillers
from slalom.document import Document, FloatArray, Queries, Text
from slalom.errors import InputError

if TYPE_CHECKING:
    from slalom.classifiers.huggingface.internals import ModelInternals


class TokenClassifier(Protocol):
    """What all classifiers made of a model and its tokenizer do alike: rows of ids in, scores out.

    A class of its own says how a text is read, and what of the model's answers are its scores.
    """

    model: Any
    tokenizer: Any
    precision: str | None
    _name: str | None  # None: the model's own
    around: ClassVar[str]  # what is always read around a text, in words
    if_empty: ClassVar[str]  # why, or what to do, where a row has no token

    @property
    def name(self) -> str:
        return self._name or name_of(self.model)

    @property
    def labels(self) -> tuple[str, ...]: ...

    def _encoded(self, text: Text) -> Encoded:
        """The text as the model is to read it."""
        ...

    def _scores(self, rows: TokenRows) -> FloatArray:
        """(n_rows, n_classes) for one row or more."""
        ...

    def __repr__(self) -> str:
        return described(self)

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        text, limit, unknown = checked_text(text), self._limit, self.tokenizer.unk_token_id
        encoded = self._encoded(text)
        return document_of(text, encoded, units, limit=limit, too_long=too_long, unknown=unknown)

    def with_fillers(self, document: Document, filler: str | None) -> Document:
        """Units, then what stands in their places where they are absent."""
        return with_fillers(document, self.tokenizer, filler)

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        return seen_rows(document, queries)

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        return answered(asked, self._ask)

    def __call__(self, texts: Sequence[Text]) -> FloatArray:
        """(n, n_classes) logits: what the classifier says of n full texts."""
        if isinstance(texts, str):
            raise InputError("give a list of texts, not one str")
        if not len(texts):
            return np.zeros((0, len(self.labels)))
        return self._ask(joined([self._encoded(text).row() for text in texts]))

    @cached_property
    def _cast_model(self) -> Any:
        return in_precision(self.model, self.precision)

    @property
    def _limit(self) -> int:
        return context_length(self.model, self.tokenizer)

    def _ask(self, rows: TokenRows) -> FloatArray:
        if not len(rows.lengths):
            return np.zeros((0, len(self.labels)))
        if not rows.lengths.all():
            raise InputError(f"{self.name} cannot read an empty input: {self.if_empty}")
        if rows.lengths.max() > self._limit:
            raise InputError(
                f"a text of {rows.lengths.max()} tokens, {self.around} included, is longer than "
                f"the {self._limit} that {self.name} reads: shorten it"
            )
        return self._scores(rows)


class HuggingFaceClassifier(TokenClassifier):
    """A sequence classifier with its tokenizer; units are words unless one asks for others."""

    around, if_empty = "special ones", "it has no special tokens"

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        labels: Sequence[str] | None = None,
        independent: bool | None = None,
        precision: str | None = None,
        name: str | None = None,
    ) -> None:
        """A transformers model says itself what its outputs are; for a module of your own say it.

        `independent`: labels do not compete (multi-label heads; one output is a regression).
        `precision`: None is as loaded; "bf16" or "fp16" ask a copy whose weights are cast once.
        """
        if not hasattr(model, "forward"):
            raise InputError(f"the model must be a torch module, not {type(model).__name__}")
        self.model = model
        self.tokenizer = checked_tokenizer(tokenizer)
        self.precision = checked_precision(precision)
        self._labels = None if labels is None else tuple(str(label) for label in labels)
        self._independent = independent
        self._name = name

    @property
    def labels(self) -> tuple[str, ...]:
        n_classes = 2 if self._one_log_odds else self._n_outputs
        if self._labels is not None:
            if len(self._labels) != n_classes:
                raise InputError(
                    f"there are {len(self._labels)} labels ({', '.join(self._labels)}) and "
                    f"{self.name} has {n_classes} classes: give one label per class"
                )
            return self._labels
        names = getattr(self._config, "id2label", None) or {}
        labels = tuple(str(names[index]) for index in sorted(names))
        return labels if len(labels) == n_classes else tuple(str(i) for i in range(n_classes))

    @property
    def independent(self) -> bool:
        if self._independent is not None:
            return self._independent
        return self._problem in ("regression", "multi_label_classification")

    @property
    def runs_elsewhere(self) -> bool:
        """On a GPU: the next texts can be asked while the last are fitted."""
        return device_of(self.model).type != "cpu"

    @property
    def accelerator(self) -> str | None:
        """The model's device, where it multiplies in double precision too."""
        device = device_of(self.model)
        return str(device) if device.type == "cuda" else None

    @property
    def fingerprint(self) -> str:
        return fingerprint(self.model, str(self.precision))

    @property
    def outline(self) -> Outline:
        """What a process without the model must know to ask."""
        return Outline(self.name, self.labels, self.independent)

    def internals(self) -> "ModelInternals":
        """What gradient and attention methods ask for."""
        from slalom.classifiers.huggingface.internals import internals_of_model

        return internals_of_model(self.model, self.tokenizer, n_classes=len(self.labels))

    @property
    def _config(self) -> Any:
        return getattr(self.model, "config", None)

    @property
    def _problem(self) -> str | None:
        return getattr(self._config, "problem_type", None)

    @property
    def _one_log_odds(self) -> bool:
        is_regression = self._problem == "regression" or bool(self._independent)
        return self._n_outputs == 1 and not is_regression

    @cached_property
    def _n_outputs(self) -> int:
        stated = getattr(self._config, "num_labels", None)
        if stated is not None and isinstance(self.model, PreTrainedModel):
            return int(stated)
        row = encode(self.tokenizer, "a").row()
        return int(answers(self._cast_model, self.tokenizer, row).shape[1])  # a wrapped model

    def _encoded(self, text: Text) -> Encoded:
        return encode(self.tokenizer, text)

    def _scores(self, rows: TokenRows) -> FloatArray:
        said = answers(self._cast_model, self.tokenizer, rows)
        n_rows, n_outputs = len(rows.lengths), self._n_outputs
        scores = checked_logits(said, n_queries=n_rows, n_classes=n_outputs, name=self.name)
        return np.hstack([np.zeros((n_rows, 1)), scores]) if self._one_log_odds else scores
