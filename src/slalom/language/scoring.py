"""How likely an answer is after each subset of the sources, as a classifier with one output.

So every method can ask it, every metric can measure with it. This part knows prompts and the
answer; what is asked is in `Writer`, a model here or behind an address. Per-token log-odds are
kept beside the scores.
"""

import json
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Protocol

import numpy as np

from slalom.answer import DECIMALS, Answer, scores_of
from slalom.classifiers.base import Units, checked_str
from slalom.classifiers.disk_cache import DiskCache, key_of
from slalom.document import BoolArray, Document, FloatArray, Queries, Span, Text
from slalom.errors import ClassifierError, InputError
from slalom.language.sources import Sources

LABEL = "the answer"
SOURCES, QUESTION = "{sources}", "{question}"
DEFAULT = f"Context: {SOURCES}\n\nQuery: {QUESTION}"
WITHOUT_QUESTION = f"Context: {SOURCES}\n\nSummarize the context."
PLAIN_END = "\n\nAnswer:"  # where no template says that it is the model's turn
MAX_NEW = 256  # tokens of an answer that the model writes itself


Tell = Callable[[int], None]  # of so many queries that were answered


def _nobody(n_queries: int) -> None:
    """Nobody watches."""


class Writer(Protocol):
    """A language model: it goes on with a prompt, and says how likely it would have said this."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    @property
    def has_template(self) -> bool:
        """Whether what it is addressed with says that it is its turn."""
        ...

    def addressed(self, content: str) -> str:
        """The content as the model is to be spoken to."""
        ...

    def write(self, prompt: str, most: int) -> str:
        """The likeliest answer of at most so many tokens."""
        ...

    def tokens(self, prompt: str, continuation: str) -> tuple[tuple[int, int], ...]:
        """(start, end) of each token of the continuation of the prompt."""
        ...

    def count(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        ...

    def log_odds(self, prompts: Sequence[str], continuation: str, *, tell: Tell) -> FloatArray:
        """(n_prompts, n_tokens) of each token of the continuation, given all before it."""
        ...


class AnswerScorer:
    """How likely one answer is, by what is shown of the sources."""

    labels = (LABEL,)

    def __init__(
        self,
        writer: Writer,
        sources: Sources,
        question: str,
        answer: str | None = None,
        *,
        prompt: str | None = None,
        cache: DiskCache | None = None,
    ) -> None:
        """Without an answer the model gives one, all sources shown. `prompt` holds {sources} and,
        if there is a question, {question}; the chat template of the model goes around it."""
        self.writer, self.sources = writer, sources
        before, after = _filled(prompt, _checked_question(question), writer)
        self._before, self._after = _around(writer, before, after)
        everything = np.ones(len(sources.spans), dtype=bool)
        whole = self.prompt(everything)
        self.answer = _checked_answer(answer) if answer is not None else _said(writer, whole)
        self.continuation = _joint(self._after) + self.answer
        at = len(self.continuation) - len(self.answer)
        spans = writer.tokens(whole, self.continuation)
        self.spans = tuple((max(0, start - at), max(0, end - at)) for start, end in spans)
        self.cache = DiskCache() if cache is None else cache
        self._shown: dict[bytes, str] = {}  # which sources → what is shown, of all that was seen
        self._answered: set[str] = set()  # what was shown, and answered
        self._tell: Tell = _nobody
        self._again: tuple[str, ...] = ()  # part of the key of what is asked anew

    @property
    def name(self) -> str:
        return self.writer.name

    @property
    def fingerprint(self) -> str:
        return key_of(self.writer.fingerprint, self._before, self._after, self.answer)[:16]

    @property
    def text(self) -> str:
        """All sources, one after the other."""
        return self.sources.text

    def prompt(self, present: BoolArray) -> str:
        """What the model reads before it answers."""
        return self._before + self.sources.shown(present) + self._after

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        """The sources as they were given: equal ones are not tied."""
        given = None if units is None or isinstance(units, str) else [tuple(u) for u in units]
        if text != self.text or given not in (None, list(self.sources.spans)):
            raise InputError(
                "a scorer reads the sources that it was made of, and no other text: "
                "give its text, and no units"
            )
        shown = tuple(self.text[start:end] for start, end in self.sources.spans)
        around = self.writer.count([self._before + self._after])[0] + len(self.spans)
        sizes = np.array(self.writer.count(shown), dtype=np.int32)
        document = recorded_document(self.text, shown, self.sources.spans)
        return replace(document, sizes=sizes, overhead=around)

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        return [*self._showing(_masks(document, queries))]

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        return [scores_of(self.log_odds(_masks(d, q)))[:, None] for d, q in asked]

    def anew(self, number: int) -> "AnswerScorer":
        """The same, whose answers are kept apart: what was asked before is asked once more."""
        again = copy(self)
        again._again = (f"again {number}",)
        return again

    def unrecorded(self, *, cached: bool = True) -> "AnswerScorer":
        """The same that has recorded nothing yet; what is in its cache it need not ask."""
        fresh = copy(self)
        fresh._shown, fresh._answered = {}, set()
        fresh.cache = self.cache if cached else DiskCache()
        return fresh

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """(n, 1): the log-odds of the answer after n texts in the place of the sources."""
        found = self._asked([str(text) for text in texts])
        return scores_of(found)[:, None]

    def log_odds(self, present: BoolArray) -> FloatArray:
        """(n, n_tokens) of each token of the answer after these sources; asked once."""
        shown = self._showing(present)
        found = self._asked(shown)
        self._answered.update(shown)
        return found

    def _showing(self, present: BoolArray) -> list[str]:
        names = [row.tobytes() for row in present]
        for name, row in zip(names, present, strict=True):
            if name not in self._shown:
                self._shown[name] = self.sources.shown(row)
        return [self._shown[name] for name in names]

    @property
    def n_computed(self) -> int:
        """Tokens that the model has computed; shared beginnings count once. 0: it does not say."""
        return int(getattr(self.writer, "n_computed", 0))

    @contextmanager
    def told(self, show: Callable[[int, int], None] | None, total: int) -> Iterator[None]:
        """Report after every query how many of the planned ones are answered."""
        done = 0

        def tell(n_queries: int) -> None:
            nonlocal done
            done += n_queries
            if show is not None:
                show(done, max(done, total))

        self._tell = tell
        try:
            yield
        finally:
            self._tell = _nobody

    def recorded(self) -> Answer:
        """The answer, with all that was asked about it; of equal sources either one counts."""
        known = {name: shown for name, shown in self._shown.items() if shown in self._answered}
        present = np.frombuffer(b"".join(known), dtype=bool).reshape(len(known), -1)
        found = self._asked(list(known.values()))
        return Answer(self.answer, self.sources.names, self.spans, present, found)

    def _asked(self, shown: Sequence[str]) -> FloatArray:
        """From the cache, or from the model; each text once."""
        keys = {text: key_of("answer-1", self.fingerprint, text, *self._again) for text in shown}
        known = {key: json.loads(row) for key, row in self.cache.read(keys.values()).items()}
        new = [text for text, key in keys.items() if key not in known]
        if new:
            prompts = [self._before + text + self._after for text in new]
            found = np.asarray(self.writer.log_odds(prompts, self.continuation, tell=self._tell))
            if found.shape != (shape := (len(new), len(self.spans))):
                raise ClassifierError(
                    f"{self.name} gave log-odds of the shape {found.shape}: expected {shape}, "
                    "a row per prompt and a column per token of the answer"
                )
            if not np.isfinite(found).all():
                raise ClassifierError(f"{self.name} returned NaN or infinity for a token")
            for text, row in zip(new, found.round(DECIMALS).tolist(), strict=True):
                known[keys[text]] = row
                self.cache.write(keys[text], json.dumps(row))
        rows = [known[keys[text]] for text in shown]
        return np.array(rows, dtype=np.float64).reshape(len(shown), len(self.spans))


class RecordedScorer:
    """The answers that an explanation stores, or those of a part: nothing new can be asked."""

    labels = (LABEL,)

    def __init__(self, name: str, document: Document, answer: Answer, tokens: BoolArray) -> None:
        self.name, self._document = name, document
        scores = scores_of(answer.log_odds[:, tokens])
        self._known = dict(zip([row.tobytes() for row in answer.present], scores, strict=True))

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        return self._document

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        return [row.tobytes() for row in _masks(document, queries)]

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        try:
            return [np.array([[self._known[e]] for e in self.seen(*one)]) for one in asked]
        except KeyError as problem:
            raise ClassifierError(
                "this was not measured, and no model is here to measure it"
            ) from problem


def recorded_document(text: str, units: Sequence[str], spans: Sequence[Span]) -> Document:
    """The sources of an explanation that was stored; what they cost is paid already."""
    n_units = len(units)
    return Document(
        text=text,
        units=tuple(units),
        spans=tuple(spans),
        keys=tuple(range(n_units)),
        features=np.arange(n_units, dtype=np.int32),
        sizes=np.zeros(n_units, dtype=np.int32),
        overhead=0,
        has_empty_query=True,
        frame=None,
    )


def _masks(document: Document, queries: Queries) -> BoolArray:
    return np.asarray(document.untied().count(queries) > 0)


def _filled(prompt: str | None, question: str, writer: Writer) -> tuple[str, str]:
    """What comes before and after the sources, the question in its place."""
    if prompt is None:
        end = "" if writer.has_template else PLAIN_END
        prompt = (DEFAULT if question else WITHOUT_QUESTION) + end
    prompt = checked_str(prompt, "the prompt")
    if prompt.count(SOURCES) != 1:
        raise InputError(
            f"the prompt {prompt!r} has {prompt.count(SOURCES)} places for the sources: write "
            f'{SOURCES} once, as in "{SOURCES}\\n\\n{QUESTION}"'
        )
    if question and QUESTION not in prompt:
        raise InputError(
            f"the prompt {prompt!r} has no place for the question: write {QUESTION}, "
            "or leave the question empty"
        )
    before, after = prompt.split(SOURCES)
    return before.replace(QUESTION, question), after.replace(QUESTION, question)


def _around(writer: Writer, before: str, after: str) -> tuple[str, str]:
    """What the model reads before and after the sources, its chat template included."""
    place = "\ue000sources\ue000"  # of a private alphabet: no template knows it
    addressed = writer.addressed(before + place + after)
    if addressed.count(place) != 1:
        raise InputError(
            f"the chat template of {writer.name} does not show a message as it is: "
            "the sources cannot be told from the rest"
        )
    first, _, last = addressed.partition(place)
    return first, last


def _joint(before: str) -> str:
    """A space before the answer, unless white space or a sign of the template is there."""
    return "" if not before or before[-1].isspace() or before[-1] in "<>[]|" else " "


def _checked_question(question: object) -> str:
    asked = checked_str("" if question is None else question, "the question").strip()
    if SOURCES in asked:
        raise InputError(f"the question holds {SOURCES}, which is the place of the sources")
    return asked


def _checked_answer(answer: object) -> str:
    said = checked_str(answer, "the answer").strip()
    if not said:
        raise InputError("the answer is empty: leave it out, and the model gives one")
    return said


def _said(writer: Writer, prompt: str) -> str:
    said = checked_str(writer.write(prompt, MAX_NEW), f"what {writer.name} said")
    if not said.strip():
        raise InputError(
            f"{writer.name} says nothing to this: give the answer that is to be explained"
        )
    return said.strip()
