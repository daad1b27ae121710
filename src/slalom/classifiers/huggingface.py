"""Any Hugging Face sequence classifier, encoder or decoder, with a fast tokenizer.

This part knows tokens, special tokens, devices and batches. Everything about them comes from
the tokenizer and the model, and both come back exactly as they were.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

import numpy as np

from slalom.classifiers.base import TOO_LONG, Units, checked_logits, checked_text
from slalom.classifiers.batching import Frame, Rows, assemble, frame_of, joined, row_bytes
from slalom.classifiers.borrowing import answers, at_rest, context_length, takes
from slalom.classifiers.units import Run, cuts_of, grouped_runs, spanned_runs, token_runs
from slalom.document import Document, FloatArray, Queries, Span, Text, features_of
from slalom.errors import InputError, UnknownNameError

PRECISIONS = ("bf16", "fp16")


@dataclass(frozen=True)
class Encoded:
    """What the tokenizer makes of a text: ids, token types, and whose characters they are."""

    ids: list[int]
    types: list[int]
    offsets: list[tuple[int, int]]
    sides: list[int | None]  # None: a special token


class HuggingFaceClassifier:
    """A sequence classifier with its tokenizer; units are tokens unless one asks for others."""

    def __init__(
        self, model: Any, tokenizer: Any, *, precision: str | None = None, name: str | None = None
    ) -> None:
        """`precision`: None is as loaded, "bf16" or "fp16" turn autocast on for the calls."""
        if not hasattr(model, "forward"):
            raise InputError(f"the model must be a torch module, not {type(model).__name__}")
        if not getattr(tokenizer, "is_fast", False):
            raise InputError(
                f"{type(tokenizer).__name__} does not say which characters a token stands for: "
                "a fast tokenizer is needed (AutoTokenizer.from_pretrained gives one)"
            )
        if precision is not None and precision not in PRECISIONS:
            raise UnknownNameError("precision", precision, PRECISIONS)
        self.model = model
        self.tokenizer = tokenizer
        self.precision = precision
        self._name = name

    @property
    def name(self) -> str:
        path = str(getattr(self._config, "name_or_path", "") or "")
        own = PurePath(path).name if PurePath(path).is_absolute() else path
        return self._name or own or type(self.model).__name__

    @property
    def labels(self) -> tuple[str, ...]:
        names = getattr(self._config, "id2label", None) or {}
        labels = tuple(str(names[index]) for index in sorted(names))
        n_classes = 2 if self._one_log_odds else self._n_outputs
        return labels if len(labels) == n_classes else tuple(str(i) for i in range(n_classes))

    @property
    def independent(self) -> bool:
        return self._problem in ("regression", "multi_label_classification")

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        if too_long not in TOO_LONG:
            raise UnknownNameError("choice for too_long", too_long, TOO_LONG)
        text = checked_text(text)
        encoded = self._encode(text)
        runs = _runs(text, encoded, units)
        if not any(not run.fixed for side in runs for run in side):
            raise InputError(f"the tokenizer of {self.name} makes no tokens of this text")
        kept, notes = self._fitting(runs, encoded, too_long=too_long)
        return _document(text, kept, encoded, mask=self.tokenizer.mask_token_id, notes=notes)

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        frame = _frame(document)
        return list(row_bytes(assemble(frame, queries), with_types=bool(frame.types.any())))

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        parts = [assemble(_frame(document), queries) for document, queries in asked]
        if not parts:
            return []
        scores = self._ask(joined(parts))
        return np.split(scores, np.cumsum([len(part.lengths) for part in parts])[:-1])

    def remarks(self, document: Document, queries: Queries, logits: FloatArray) -> tuple[str, ...]:
        return ()

    def __call__(self, texts: Sequence[Text]) -> FloatArray:
        if isinstance(texts, str):
            raise InputError("give a list of texts, not one str")
        if not len(texts):
            return np.zeros((0, len(self.labels)))
        return self._ask(joined([self._whole(text) for text in texts]))

    @property
    def _config(self) -> Any:
        return getattr(self.model, "config", None)

    @property
    def _problem(self) -> str | None:
        return getattr(self._config, "problem_type", None)

    @property
    def _one_log_odds(self) -> bool:
        return self._n_outputs == 1 and self._problem != "regression"

    @cached_property
    def _n_outputs(self) -> int:
        stated = getattr(self._config, "num_labels", None)
        if stated is not None:
            return int(stated)
        return int(self._outputs(self._whole("a")).shape[1])  # a wrapped model: ask it

    def _encode(self, text: Text) -> Encoded:
        sides = (text,) if isinstance(text, str) else text
        with at_rest(self.tokenizer):
            encoding = self.tokenizer(
                *sides,
                padding=False,
                truncation=False,
                return_offsets_mapping=True,
                verbose=False,  # its warning about long texts would stay on the user's tokenizer
            )
        ids = encoding["input_ids"]
        types = encoding.get("token_type_ids") or [0] * len(ids)
        return Encoded(ids, types, encoding["offset_mapping"], encoding.sequence_ids(0))

    def _whole(self, text: Text) -> Rows:
        """The ordinary encoding of a text, as one row."""
        encoded = self._encode(text)
        row = np.array([encoded.ids, encoded.types], dtype=np.int32)
        return Rows(row[0], row[1], np.array([row.shape[1]]))

    def _fitting(
        self, runs: list[list[Run]], encoded: Encoded, *, too_long: str
    ) -> tuple[list[list[Run]], tuple[str, ...]]:
        """The runs that fit into the model's context: all of them, or an error, or the first."""
        limit = context_length(self.model, self.tokenizer)
        if len(encoded.ids) <= limit:
            return runs, ()
        n_special = encoded.sides.count(None)
        n_text = len(encoded.ids) - n_special
        if too_long == "error" or len(runs) > 1:
            raise InputError(
                f"the text has {n_text} tokens and {n_special} special ones, the model reads at "
                f"most {limit}: shorten the text"
                + (' or cut it with too_long="truncate"' if len(runs) == 1 else "")
            )
        first = runs[0][0].first
        kept = [run for run in runs[0] if run.last - first <= limit - n_special]
        if not any(not run.fixed for run in kept):
            raise InputError(
                f"the first unit alone has more tokens than the model reads ({limit}): "
                "choose smaller units"
            )
        note = f"cut to the first {kept[-1].last - first} of {n_text} tokens"
        return [kept], (note,)

    def _ask(self, rows: Rows) -> FloatArray:
        scores = self._outputs(rows)
        n_rows, name = len(rows.lengths), self.name
        checked = checked_logits(scores, n_queries=n_rows, n_classes=self._n_outputs, name=name)
        return np.hstack([np.zeros((n_rows, 1)), checked]) if self._one_log_odds else checked

    def _outputs(self, rows: Rows) -> FloatArray:
        if not len(rows.lengths):
            return np.zeros((0, self._n_outputs))
        if not rows.lengths.all():
            raise InputError(f"{self.name} cannot read an empty input: it has no special tokens")
        limit = context_length(self.model, self.tokenizer)
        if rows.lengths.max() > limit:
            raise InputError(
                f"a text of {rows.lengths.max()} tokens, special ones included, is longer than "
                f"the {limit} that {self.name} reads: shorten it"
            )
        spare = self.tokenizer.pad_token_id
        typed = takes(self.model, "token_type_ids") and _makes_types(self.tokenizer)
        return answers(self.model, rows, spare_pad=spare, typed=typed, precision=self.precision)


def _makes_types(tokenizer: Any) -> bool:
    return "token_type_ids" in tokenizer.model_input_names


def _frame(document: Document) -> Frame:
    if not isinstance(document.frame, Frame):
        raise InputError("this document was split by another classifier: split it with this one")
    return document.frame


def _runs(text: Text, encoded: Encoded, units: Units) -> list[list[Run]]:
    """The tokens of each side, as units and as text that is always shown."""
    sides = [text] if isinstance(text, str) else list(text)
    tokens = []
    for number, side in enumerate(sides):
        places = [place for place, owner in enumerate(encoded.sides) if owner == number]
        offsets = [encoded.offsets[place] for place in places]
        tokens.append(token_runs(side, offsets, places[0] if places else 0))
    if units is None or units == "token":
        return tokens
    cuts = cuts_of(text, units)
    if isinstance(units, str):
        return [grouped_runs(runs, cut) for runs, cut in zip(tokens, cuts, strict=True)]
    return [spanned_runs(*parts) for parts in zip(sides, tokens, cuts, strict=True)]


def _document(
    text: Text, runs: list[list[Run]], encoded: Encoded, *, mask: int | None, notes: tuple[str, ...]
) -> Document:
    sides = [text] if isinstance(text, str) else list(text)
    pair = len(sides) > 1
    frame = _laid_out(runs, encoded, mask=mask)
    shown = [(side, run) for side, row in enumerate(runs) for run in row if not run.fixed]
    ids = [tuple(encoded.ids[run.first : run.last]) for _, run in shown]
    spans: list[Span] = [(*([side] if pair else []), run.start, run.end) for side, run in shown]
    keys = [(side, key) if pair else key for (side, _), key in zip(shown, ids, strict=True)]
    n_units = len(shown)
    overhead = int(frame.lengths[n_units : frame.mask].sum())
    return Document(
        text=text,
        units=tuple(sides[side][run.start : run.end] for side, run in shown),
        spans=tuple(spans),
        keys=tuple(keys),
        features=features_of(keys),
        sizes=frame.lengths[:n_units],
        overhead=overhead,
        can_be_empty=overhead > 0,
        frame=frame,
        notes=notes,
    )


def _laid_out(runs: list[list[Run]], encoded: Encoded, *, mask: int | None) -> Frame:
    """Units in their slots, and between them special tokens and text that is always shown."""
    special = [
        Run(place, place + 1, 0, 0, fixed=True)
        for place, side in enumerate(encoded.sides)
        if side is None
    ]
    units: list[tuple[list[int], list[int]]] = []
    fixed: list[tuple[list[int], list[int]]] = [([], [])]
    slots: list[int] = []
    for run in sorted([*special, *(run for row in runs for run in row)], key=lambda run: run.first):
        ids, types = encoded.ids[run.first : run.last], encoded.types[run.first : run.last]
        open_slot = bool(slots) and slots[-1] == len(fixed) - 1
        other_side = open_slot and encoded.sides[run.first] != encoded.sides[run.first - 1]
        if open_slot and (run.fixed or other_side):
            fixed.append(([], []))
        if run.fixed:
            fixed[-1][0].extend(ids)
            fixed[-1][1].extend(types)
        else:
            units.append((ids, types))
            slots.append(len(fixed) - 1)
    if slots[-1] == len(fixed) - 1:
        fixed.append(([], []))
    masked = ([], []) if mask is None else ([mask], [0])
    return frame_of(units, fixed, slots=slots, mask=masked)
