"""What the classifier has said about a text: each distinct query is asked once, and counted here.

To see whether it repeats itself some are asked anew, or all of them several times.

A text may be split in more than one way while it is explained: answers are shared by all its
documents, and counted for each and for all of them together.
"""

from collections.abc import Hashable, Sequence, Sized
from dataclasses import dataclass, field
from functools import cached_property
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from slalom.classifiers.base import (
    Classifier,
    anew,
    checked_logits,
    is_independent,
    remarks_on,
)
from slalom.classifiers.cached import distinct
from slalom.document import END, Document, FloatArray, Queries, stack
from slalom.errors import ClassifierError, counted
from slalom.explainers.base import Answers, Ask, Outputs, Repeats

EMPTY = np.array([[END]], dtype=np.int32)
Pair = tuple[Document, Queries]


@dataclass(eq=False)
class Account:
    """One document: what was asked about it, and what that cost."""

    document: Document
    empty: Hashable  # what the classifier reads of the empty text; None: that cannot be asked
    known: dict[Hashable, FloatArray] = field(default_factory=dict)  # what it read → logits
    queries: list[Queries] = field(default_factory=list)  # in the order of `known`
    twice: dict[Hashable, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    n_again: int = 0  # asked anew, to see what answers are worth
    n_tokens: int = 0


@dataclass(frozen=True, eq=False)
class Pending:
    """An Ask as the classifier reads it, and what of it is new."""

    ask: Ask
    entries: Sequence[Hashable]  # of the queries that will be answered
    rows: NDArray[np.intp]  # which queries these are
    counted: NDArray[np.intp]  # queries that are new about this document
    asked: NDArray[np.intp]  # those of them that are new about the text
    again: Queries  # those that are asked anew
    again_entries: Sequence[Hashable]

    @property
    def pair(self) -> Pair:
        return self.ask.document, self.ask.queries[self.asked]

    @property
    def pair_again(self) -> Pair:
        return self.ask.document, self.again

    @cached_property
    def n_tokens(self) -> tuple[int, int]:
        """Of the new queries, and of those that are asked anew."""
        new, again = (int(d.n_tokens(queries).sum()) for d, queries in (self.pair, self.pair_again))
        return new, again


@dataclass(frozen=True, eq=False)
class Said:
    """What a classifier said to what was new of one Ask."""

    logits: FloatArray  # (n_asked, n_classes), means where each was asked several times
    first: FloatArray  # (n_asked, n_classes) of the first time, and
    last: FloatArray  # of the last
    again: FloatArray  # (n_again, n_classes)
    seconds: float


@dataclass(eq=False)
class Conversation:
    """All that is asked about one text, every query `n_each` times."""

    classifier: Classifier
    n_each: int = 1
    known: dict[Hashable, FloatArray] = field(default_factory=dict)
    accounts: dict[int, Account] = field(default_factory=dict)  # by the identity of the frame
    n_tokens: int = 0
    seconds: float = 0.0

    @property
    def n_repeats(self) -> int:
        n_again = sum(account.n_again for account in self.accounts.values())
        return n_again + (self.n_each - 1) * len(self.known)

    @property
    def n_queries(self) -> int:
        return self.n_repeats + len(self.known)

    def begin(self, ask: Ask) -> Pending:
        """Find out what is to be asked."""
        account = self._account(ask.document)
        entries = self.classifier.seen(ask.document, ask.queries)
        first, _ = distinct(entries)
        new = [at for at in first.tolist() if entries[at] not in account.known]
        again, again_entries = self._again(account, ask)
        if ask.most is not None:
            n_before = len(account.known) + account.n_again + len(again)
            new = new[: max(0, ask.most - n_before)]
        answered = account.known.keys() | {entries[at] for at in new}
        rows = np.array([at for at, one in enumerate(entries) if one in answered], dtype=np.intp)
        return Pending(
            ask,
            [entries[at] for at in rows.tolist()],
            rows,
            np.array(new, dtype=np.intp),
            np.array([at for at in new if entries[at] not in self.known], dtype=np.intp),
            again,
            again_entries,
        )

    def _again(self, account: Account, ask: Ask) -> tuple[Queries, list[Hashable]]:
        """Known queries that were not asked anew before, as far as `most` allows."""
        if ask.again is None:
            return ask.queries[:0], []
        entries = self.classifier.seen(ask.document, ask.again)
        first, _ = distinct(entries)
        wanted = [
            at
            for at in first.tolist()
            if entries[at] in account.known and entries[at] not in account.twice
        ]
        if ask.most is not None:
            wanted = wanted[: max(0, ask.most - len(account.known) - account.n_again)]
        return ask.again[wanted], [entries[at] for at in wanted]

    def end(self, pending: Pending, said: Said) -> Answers:
        """Keep what was said to the new queries; answers to all of them."""
        account = self._keep(pending, said)
        first, inverse = distinct(pending.entries)
        rows = [account.known[entry] for entry in pending.entries]
        n_repeats = account.n_again + (self.n_each - 1) * len(account.known)
        return Answers(
            logits=np.array(rows).reshape(len(rows), len(self.classifier.labels)),
            rows=pending.rows,
            first=first,
            inverse=inverse,
            empty=account.known.get(account.empty),
            outputs=outputs_of(self.classifier),
            remarks=self._remarks(account),
            repeats=self._repeats(account),
            n_queries=len(account.known) + n_repeats,
            n_repeats=n_repeats,
            n_tokens=account.n_tokens,
            seconds=self.seconds,
        )

    def _keep(self, pending: Pending, said: Said) -> Account:
        account, ask = self._account(pending.ask.document), pending.ask
        by_row = dict(zip(pending.rows.tolist(), pending.entries, strict=True))
        asked = [by_row[at] for at in pending.asked.tolist()]
        self.known.update(zip(asked, said.logits, strict=True))
        counted = [by_row[at] for at in pending.counted.tolist()]
        account.known.update((entry, self.known[entry]) for entry in counted)
        account.queries.append(ask.queries[pending.counted])
        if self.n_each > 1:
            account.twice.update(zip(asked, zip(said.first, said.last, strict=True), strict=True))
        for entry, logits in zip(pending.again_entries, said.again, strict=True):
            account.twice[entry] = account.known[entry], logits
        n_new, n_again = pending.n_tokens
        self.n_tokens += self.n_each * n_new + n_again
        of_counted = int(ask.document.n_tokens(account.queries[-1]).sum())
        account.n_tokens += self.n_each * of_counted + n_again
        account.n_again += len(pending.again)
        self.seconds += said.seconds
        return account

    def _repeats(self, account: Account) -> Repeats | None:
        if not account.twice:
            return None
        before, after = zip(*account.twice.values(), strict=True)
        return Repeats(np.array(before), np.array(after), self.n_each)

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
    """The new queries of all of them, asked together; then those that are asked anew."""
    start = perf_counter()
    n_each = max((conversation.n_each for conversation, _ in asked), default=1)
    pairs = [pending.pair for _, pending in asked]
    rounds = [_checked(classifier, pairs)]
    rounds += [_checked(anew(classifier, number), pairs) for number in range(1, n_each)]
    pairs_again = [pending.pair_again for _, pending in asked]
    again = _checked(anew(classifier, 1), pairs_again) if _any_rows(pairs_again) else None
    n_tokens = [sum(pending.n_tokens) for _, pending in asked]
    per_token = (perf_counter() - start) / max(1, sum(n_tokens))
    return [
        conversation.end(
            pending,
            Said(
                np.mean([logits[at] for logits in rounds], axis=0) if n_each > 1 else rounds[0][at],
                rounds[0][at],
                rounds[-1][at],
                rounds[0][at][:0] if again is None else again[at],
                n_tokens[at] * per_token,
            ),
        )
        for at, (conversation, pending) in enumerate(asked)
    ]


def _any_rows(pairs: Sequence[Pair]) -> bool:
    return any(len(queries) for _, queries in pairs)


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
