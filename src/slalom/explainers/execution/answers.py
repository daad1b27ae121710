"""What the classifier has said about a text: each distinct query is asked once, and counted here.

A text may be split in more than one way while it is explained: answers are shared by all its
documents, and counted for each and for all of them together.
"""

from collections.abc import Hashable, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from slalom.classifiers.base import Classifier, checked_logits, is_independent, remarks_on
from slalom.classifiers.cached import distinct
from slalom.document import END, Document, FloatArray, Queries, stack
from slalom.errors import ClassifierError, counted
from slalom.explainers.base import Answers, Ask, Outputs

EMPTY = np.array([[END]], dtype=np.int32)
Pair = tuple[Document, Queries]


@dataclass(eq=False)
class Account:
    """One document: what was asked about it, and what that cost."""

    document: Document
    empty: Hashable  # what the classifier reads of the empty text; None: that cannot be asked
    known: dict[Hashable, FloatArray] = field(default_factory=dict)  # what it read → logits
    queries: list[Queries] = field(default_factory=list)  # in the order of `known`
    n_tokens: int = 0


@dataclass(frozen=True, eq=False)
class Pending:
    """An Ask as the classifier reads it, and what of it is new."""

    ask: Ask
    entries: Sequence[Hashable]  # of the queries that will be answered
    rows: NDArray[np.intp]  # which queries these are
    counted: NDArray[np.intp]  # queries that are new about this document
    asked: NDArray[np.intp]  # those of them that are new about the text

    @property
    def pair(self) -> Pair:
        return self.ask.document, self.ask.queries[self.asked]

    @cached_property
    def n_tokens(self) -> int:
        return int(self.ask.document.n_tokens(self.ask.queries[self.asked]).sum())


@dataclass(eq=False)
class Conversation:
    """All that is asked about one text."""

    classifier: Classifier
    known: dict[Hashable, FloatArray] = field(default_factory=dict)
    accounts: dict[int, Account] = field(default_factory=dict)  # by the identity of the frame
    n_tokens: int = 0
    seconds: float = 0.0

    @property
    def n_queries(self) -> int:
        return len(self.known)

    def begin(self, ask: Ask) -> Pending:
        """Find out what is to be asked."""
        account = self._account(ask.document)
        entries = self.classifier.seen(ask.document, ask.queries)
        first, _ = distinct(entries)
        new = [at for at in first.tolist() if entries[at] not in account.known]
        if ask.most is not None:
            new = new[: max(0, ask.most - len(account.known))]
        answered = account.known.keys() | {entries[at] for at in new}
        rows = np.array([at for at, one in enumerate(entries) if one in answered], dtype=np.intp)
        return Pending(
            ask,
            [entries[at] for at in rows.tolist()],
            rows,
            np.array(new, dtype=np.intp),
            np.array([at for at in new if entries[at] not in self.known], dtype=np.intp),
        )

    def end(self, pending: Pending, logits: FloatArray, seconds: float) -> Answers:
        """Keep what was said to the new queries; answers to all of them."""
        account, ask = self._account(pending.ask.document), pending.ask
        by_row = dict(zip(pending.rows.tolist(), pending.entries, strict=True))
        asked = [by_row[at] for at in pending.asked.tolist()]
        self.known.update(zip(asked, logits, strict=True))
        self.n_tokens += pending.n_tokens
        self.seconds += seconds
        counted = [by_row[at] for at in pending.counted.tolist()]
        account.known.update((entry, self.known[entry]) for entry in counted)
        account.queries.append(ask.queries[pending.counted])
        account.n_tokens += int(ask.document.n_tokens(account.queries[-1]).sum())
        first, inverse = distinct(pending.entries)
        n_classes = len(self.classifier.labels)
        rows = [account.known[entry] for entry in pending.entries]
        return Answers(
            logits=np.array(rows).reshape(len(rows), n_classes),
            rows=pending.rows,
            first=first,
            inverse=inverse,
            empty=account.known.get(account.empty),
            outputs=outputs_of(self.classifier),
            remarks=self._remarks(account),
            n_queries=len(account.known),
            n_tokens=account.n_tokens,
            seconds=self.seconds,
        )

    def _account(self, document: Document) -> Account:
        """The same for tied and untied versions of a document, which share their frame."""
        found = self.accounts.get(id(document.frame))
        if found is None:
            empty = None
            if document.has_empty_query:
                (empty,) = self.classifier.seen(document, EMPTY)
            found = self.accounts[id(document.frame)] = Account(document, empty)
        return found

    def _remarks(self, account: Account) -> tuple[str, ...]:
        if getattr(self.classifier, "remarks", None) is None:
            return ()
        logits = np.array(list(account.known.values()))
        return remarks_on(self.classifier, account.document, stack(account.queries), logits)


def outputs_of(classifier: Classifier) -> Outputs:
    return Outputs(classifier.name, tuple(classifier.labels), is_independent(classifier))


def answers_to(
    classifier: Classifier, asked: Sequence[tuple[Conversation, Pending]]
) -> list[Answers]:
    """The new queries of all of them, asked together."""
    start = perf_counter()
    logits = _checked(classifier, [pending.pair for _, pending in asked])
    n_tokens = [pending.n_tokens for _, pending in asked]
    per_token = (perf_counter() - start) / max(1, sum(n_tokens))
    return [
        conversation.end(pending, rows, n * per_token)
        for (conversation, pending), rows, n in zip(asked, logits, n_tokens, strict=True)
    ]


def ask(classifier: Classifier, asked: Sequence[Pair]) -> list[Answers]:
    """One Ask about each of some documents, all together."""
    begun = []
    for document, queries in asked:
        conversation = Conversation(classifier)
        begun.append((conversation, conversation.begin(Ask(document, queries))))
    return answers_to(classifier, begun)


def _checked(classifier: Classifier, new: Sequence[Pair]) -> list[FloatArray]:
    """The answers, checked: a class of the caller's own may return anything."""
    asked = [pair for pair in new if len(pair[1])]
    answers = classifier.logits(asked) if asked else []
    if not isinstance(answers, Sized) or len(answers) != len(asked):
        given = len(answers) if isinstance(answers, Sized) else type(answers).__name__
        raise ClassifierError(
            f"{classifier.name}.logits returned {given} for {counted(len(asked), 'document')}: "
            "expected a list with one array for each"
        )
    labels, name, left = classifier.labels, classifier.name, iter(answers)
    return [
        checked_logits(next(left), n_queries=len(queries), n_classes=len(labels), name=name)
        if len(queries)
        else np.zeros((0, len(labels)))
        for _, queries in new
    ]
