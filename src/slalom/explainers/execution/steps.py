"""Many generators of queries in step: round by round, until each has its result.

What they ask is asked together, in one call of the classifier per step. Each distinct query about
a text is asked once, and counted here; to see whether the classifier repeats itself some are asked
anew, or all of them several times. A text may be split in more than one way while it is explained:
answers are shared by all its documents, and counted for each and for all of them together.
"""

from collections.abc import Hashable, Sequence, Sized
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np

from slalom.classifiers.base import Classifier, anew, checked_logits, is_independent, remarks_on
from slalom.document import END, Document, FloatArray, Queries, distinct, stack
from slalom.errors import ClassifierError, SlalomError, counted
from slalom.explainers.base import Answers, Ask, Asking, Explainer, Repeats, Request, Result
from slalom.explanation import Explanation
from slalom.surrogates.linalg import one_thread

EMPTY = np.array([[END]], dtype=np.int32)
Pair = tuple[Document, Queries]


@dataclass(frozen=True)
class Order:
    """What is to be done with every document."""

    explainer: Explainer
    request: Request
    keep_errors: bool = False  # a document's SlalomError stands in the place of its explanation


def run_local(classifier: Classifier, order: Order, documents: Sequence[Document]) -> list[Result]:
    """Documents by one method, together, in this process."""
    request, n_each, allowed = order.request, order.request.repeats, order.request.n_queries
    distinct_ones = replace(request, n_queries=None if allowed is None else allowed // n_each)
    plans = [order.explainer.plan(document, distinct_ones) for document in documents]
    return in_step(classifier, plans, keep_errors=order.keep_errors, n_each=n_each)


def in_step(
    classifier: Classifier,
    plans: Sequence[Asking[Any]],
    *,
    keep_errors: bool = False,
    n_each: int = 1,
) -> list[Any]:
    """What each of them returns; with `keep_errors` its SlalomError where it fails."""
    dialogues = [Dialogue(plan, classifier, n_each) for plan in plans]
    _advance([(dialogue, None) for dialogue in dialogues], keep_errors)
    while waiting := [dialogue for dialogue in dialogues if dialogue.pending is not None]:
        _advance(_answered(waiting, keep_errors), keep_errors)
    return [dialogue.result for dialogue in dialogues]


def _advance(answered: "Sequence[tuple[Dialogue, Any]]", keep_errors: bool) -> None:
    with one_thread():
        for dialogue, answer in answered:
            try:
                dialogue.advance(answer)
            except SlalomError as problem:
                if not keep_errors:
                    raise
                dialogue.fail(problem)


def _answered(dialogues: "Sequence[Dialogue]", keep_errors: bool) -> "list[tuple[Dialogue, Any]]":
    """All together; where that fails and errors are kept, each for itself."""
    try:
        return list(zip(dialogues, _answers(dialogues), strict=True))
    except SlalomError as problem:
        if not keep_errors:
            raise
        if len(dialogues) == 1:
            dialogues[0].fail(problem)
            return []
    return [one for dialogue in dialogues for one in _answered([dialogue], keep_errors)]


@dataclass(eq=False)
class Account:
    """One document: what was asked about it, and what that cost."""

    document: Document
    empty: Hashable  # what the classifier reads of the empty text; None: that cannot be asked
    known: dict[Hashable, FloatArray] = field(default_factory=dict)  # what it read → logits
    queries: list[Queries] = field(default_factory=list)  # in the order of `known`
    twice: dict[Hashable, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    n_again: int = 0  # asked anew, to see what answers are worth

    def room(self, ask: Ask) -> int | None:
        """How many more may be asked; None: any number."""
        return None if ask.most is None else max(0, ask.most - len(self.known) - self.n_again)


@dataclass(frozen=True, eq=False)
class Pending:
    """An Ask as the classifier reads it, and what of it is new: entries with their queries."""

    ask: Ask
    account: Account
    entries: Sequence[Hashable]  # of all its queries
    new: dict[Hashable, int]  # about this document
    asked: dict[Hashable, int]  # those of them that are new about the text
    again: dict[Hashable, int]  # those that are asked anew

    @property
    def pair(self) -> Pair:
        return self.ask.document, self.ask.queries[list(self.asked.values())]

    @property
    def pair_again(self) -> Pair:
        again = self.ask.queries[:0] if self.ask.again is None else self.ask.again
        return self.ask.document, again[list(self.again.values())]


@dataclass(eq=False)
class Dialogue:
    """One generator and all that is asked about its text, every query `n_each` times."""

    plan: Asking[Any]
    classifier: Classifier
    n_each: int = 1
    pending: Pending | None = None  # what it waits for; None: it has its result
    result: Any = None
    known: dict[Hashable, FloatArray] = field(default_factory=dict)
    accounts: dict[int, Account] = field(default_factory=dict)  # by the identity of the frame
    n_tokens: int = 0
    seconds: float = 0.0  # of asking, and of its own computing

    def advance(self, answer: Any = None) -> None:
        """Up to what it asks next, or its end."""
        start = perf_counter()
        try:
            wanted = self.plan.send(answer)
            while not isinstance(wanted, Ask):
                wanted = self.plan.send(wanted.at(self.classifier))
            self.pending = self.begin(wanted)
        except StopIteration as done:
            self.pending, self.result = None, done.value
        finally:
            self.seconds += perf_counter() - start
        if isinstance(self.result, Explanation):
            self.result = self._with_cost(self.result)

    def fail(self, problem: SlalomError) -> None:
        self.pending, self.result = None, problem

    def _with_cost(self, explanation: Explanation) -> Explanation:
        """What all its rounds cost together, beside what it looked at itself."""
        quality = explanation.quality
        n_repeats = sum(account.n_again for account in self.accounts.values())
        n_repeats += (self.n_each - 1) * len(self.known)
        cost = replace(
            quality,
            n_queries=len(self.known) + n_repeats,
            n_repeats=n_repeats,
            n_tokens=self.n_tokens + quality.n_tokens,
            seconds=self.seconds,
        )
        return replace(explanation, quality=cost)

    def begin(self, ask: Ask) -> Pending:
        """Find out what is to be asked."""
        account, document = self._account(ask.document), ask.document
        room = account.room(ask)
        again: dict[Hashable, int] = {}
        if ask.again is not None:
            twice, known = account.twice, account.known
            read = _first_places(self.classifier.seen(document, ask.again))
            again = {one: at for one, at in read.items() if one in known and one not in twice}
            again = dict(list(again.items())[:room])
        entries = self.classifier.seen(document, ask.queries)
        new = {one: at for one, at in _first_places(entries).items() if one not in account.known}
        new = new if room is None else dict(list(new.items())[: max(0, room - len(again))])
        asked = {one: at for one, at in new.items() if one not in self.known}
        return Pending(ask, account, entries, new, asked, again)

    def end(self, rounds: FloatArray, again: FloatArray) -> Answers:
        """Keep what was said to the pending queries; answers to all of them.

        The numbers are (n_each, n_asked, n_classes) and (n_again, n_classes).
        """
        pending, n_each = self.pending, self.n_each
        assert pending is not None
        account = pending.account
        self._keep(pending, rounds, again)
        answered = np.array([one in account.known for one in pending.entries], dtype=bool)
        rows = np.flatnonzero(answered)
        entries = [pending.entries[at] for at in rows.tolist()]
        first, inverse = distinct(entries)
        labels = tuple(self.classifier.labels)
        logits = np.array([account.known[entry] for entry in entries])
        every = np.array(list(account.known.values()))
        n_repeats = account.n_again + (n_each - 1) * len(account.known)
        return Answers(
            logits=logits.reshape(len(rows), len(labels)),
            rows=rows,
            first=first,
            inverse=inverse,
            empty=account.known.get(account.empty),
            classifier=self.classifier.name,
            labels=labels,
            independent=is_independent(self.classifier),
            remarks=remarks_on(self.classifier, account.document, stack(account.queries), every),
            repeats=self._repeats(account),
            n_queries=len(account.known) + n_repeats,
            n_repeats=n_repeats,
        )

    def _keep(self, pending: Pending, rounds: FloatArray, again: FloatArray) -> None:
        account, n_each = pending.account, self.n_each
        means = rounds[0] if n_each == 1 else rounds.mean(axis=0)
        self.known.update(zip(pending.asked, means, strict=True))
        account.known.update((entry, self.known[entry]) for entry in pending.new)
        if n_each > 1:
            both = zip(rounds[0], rounds[-1], strict=True)
            account.twice.update(zip(pending.asked, both, strict=True))
        for entry, logits in zip(pending.again, again, strict=True):
            account.twice[entry] = account.known[entry], logits
        account.queries.append(pending.ask.queries[list(pending.new.values())])
        account.n_again += len(pending.again)

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


def _first_places(entries: Sequence[Hashable]) -> dict[Hashable, int]:
    return {entries[at]: at for at in distinct(entries)[0].tolist()}


def _answers(dialogues: Sequence[Dialogue]) -> list[Answers]:
    """The new queries of all of them, asked together; then those that are asked anew."""
    start, classifier, n_each = perf_counter(), dialogues[0].classifier, dialogues[0].n_each
    waiting = [dialogue.pending for dialogue in dialogues if dialogue.pending is not None]
    pairs, pairs_again = [one.pair for one in waiting], [one.pair_again for one in waiting]
    rounds = [_checked(classifier, pairs)]
    rounds += [_checked(anew(classifier, number), pairs) for number in range(1, n_each)]
    asked_again = any(len(queries) for _, queries in pairs_again)
    again = _checked(anew(classifier, 1) if asked_again else classifier, pairs_again)
    both = zip(pairs, pairs_again, strict=True)
    tokens = [n_each * n_tokens(pair) + n_tokens(pair_again) for pair, pair_again in both]
    per_token = (perf_counter() - start) / max(1, sum(tokens))
    answers = []
    for at, dialogue in enumerate(dialogues):
        answers.append(dialogue.end(np.stack([logits[at] for logits in rounds]), again[at]))
        dialogue.n_tokens += tokens[at]
        dialogue.seconds += per_token * tokens[at]
    return answers


def n_tokens(pair: Pair) -> int:
    document, queries = pair
    return int(document.n_tokens(queries).sum())


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
