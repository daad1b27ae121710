"""Chat models behind an OpenAI-compatible API, hosted or on your own machine.

This part knows prompts, labels and threads. Texts are cut and put together as for functions;
every reply is in the cache before anything else happens to it, so nothing is paid for twice.
"""

import os
from collections.abc import Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import PurePath

import numpy as np

from slalom.classifiers.base import Units
from slalom.classifiers.chat.answers import LabelAnswer, check_named, spellings_of
from slalom.classifiers.chat.server import Budget, ChatServer, Key, Session, client_library
from slalom.classifiers.chat.strategies import AnswerStrategy, ByLogprobs, BySampling
from slalom.classifiers.disk_cache import DiskCache, key_of
from slalom.classifiers.text.function import FunctionClassifier
from slalom.classifiers.text.strings import TextOutline
from slalom.document import Document, FloatArray, Queries, Text
from slalom.errors import BudgetError, ClassifierError, InputError, Setting

BYTES_PER_TOKEN = 4  # about, in most languages and vocabularies
TYPICAL_TEMPLATE = 24  # tokens of a chat template with its usual system message, about
ENOUGH_TO_JUDGE = 16  # answers after which a model that names no label is given up
PLACEHOLDER = "{text}"


class ChatClassifier:
    """Asks a chat model for one token per text and reads the labels' log-odds off it.

    `labels` says what the model answers for each label. `prompt` holds {text}; the default asks
    for one of the answers. With `n_samples` the model needs no log-probabilities: that many
    answers are drawn and counted. `max_requests` and `max_tokens_total` are hard limits over the
    life of this object; `cache` names a file that keeps every reply.
    """

    def __init__(
        self,
        model: str,
        labels: Mapping[str, str],
        base_url: str | None = None,
        api_key: str | None = None,
        prompt: str | None = None,
        *,
        cache: str | os.PathLike[str] | None = None,
        n_samples: int | None = None,
        concurrency: int = 8,
        max_requests: int | None = None,
        max_tokens_total: int | None = None,
        retries: int = 6,
        timeout: float = 60.0,
    ) -> None:
        client_library()
        self._spellings = spellings_of(labels)
        self.labels = tuple(labels)
        self.prompt = checked_prompt(prompt, labels)
        for name, given, least in (
            ("n_samples", n_samples, 1),
            ("concurrency", concurrency, 1),
            ("retries", retries, 0),
        ):
            if given is not None and (not isinstance(given, int) or given < least):
                raise InputError(f"{name} must be a whole number of at least {least}, not {given}")
        self.concurrency = concurrency
        self.retries = retries
        self.server = ChatServer(
            model,
            base_url,
            Key(api_key),
            budget=Budget(max_requests, max_tokens_total),
            timeout=timeout,
        )
        self.cache = DiskCache(cache)
        self._strategy: AnswerStrategy = (
            ByLogprobs() if n_samples is None else BySampling(n_samples)
        )
        self._again = 0  # how often the same was asked before
        self._words = FunctionClassifier(self.__call__, labels=self.labels, gives="logits")

    def __repr__(self) -> str:
        return f"ChatClassifier({self.server.model!r}, base_url={self.server.address!r})"

    @property
    def name(self) -> str:
        model = self.server.model
        return PurePath(model).name if PurePath(model).is_absolute() else model

    @property
    def outline(self) -> TextOutline:
        return self._words.outline

    @property
    def fingerprint(self) -> str:
        """How it is asked and read; the address may change while the model stays."""
        return key_of(self.prompt, str(self._spellings), str(self._strategy))[:16]

    def split(self, text: Text, units: Units = None, *, too_long: str = "error") -> Document:
        if not isinstance(text, str):
            raise InputError("a chat model reads one text, not a pair: put both into the prompt")
        if units == "token":
            raise InputError(
                "a chat model does not show its tokens: its units are word, sentence or spans"
            )
        document = self._words.split(text, units, too_long=too_long)
        per_query = self._strategy.n_requests(None)
        sizes = [per_query * _estimated_tokens(unit) for unit in document.units]
        return replace(
            document,
            sizes=np.array(sizes, dtype=np.int32),
            overhead=per_query * (_estimated_tokens(self.prompt) + TYPICAL_TEMPLATE),
        )

    def seen(self, document: Document, queries: Queries) -> list[Hashable]:
        return self._words.seen(document, queries)

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        texts = [self._texts(document, queries) for document, queries in asked]
        scores = self([text for part in texts for text in part])
        return np.split(scores, np.cumsum([len(part) for part in texts])[:-1]) if texts else []

    def anew(self, number: int) -> "ChatClassifier":
        """The same, whose answers are kept apart: what was answered before is asked once more."""
        again = copy(self)
        again._again = number
        if isinstance(self._strategy, BySampling):
            again._strategy = replace(self._strategy, again=number)
        return again

    def remarks(self, document: Document, queries: Queries, logits: FloatArray) -> tuple[str, ...]:
        return self._strategy.remarks(list(self._known(self._texts(document, queries)).values()))

    def unpaid(self, document: Document, queries: Queries) -> tuple[int, int]:
        """The requests and tokens that these queries would take now, at most."""
        keys = [self._key(text) for text in self._texts(document, queries)]
        stored = self.cache.read(keys)
        requests = np.array([self._strategy.n_requests(stored.get(key)) for key in keys], dtype=int)
        tokens_per_request = document.n_tokens(queries) / self._strategy.n_requests(None)
        return int(requests.sum()), round(float(requests @ tokens_per_request))

    def __call__(self, texts: Sequence[str]) -> FloatArray:
        """(n, n_classes) logits: what the classifier says of n full texts."""
        if isinstance(texts, str):
            raise InputError("give a list of texts, not one str")
        self._ask_missing(list(dict.fromkeys(texts)))
        known = self._known(texts)
        check_named(list(known.values()), self._spellings, self.name)
        rows = [known[text].logits for text in texts]
        return np.array(rows, dtype=np.float64).reshape(len(texts), len(self.labels))

    def _texts(self, document: Document, queries: Queries) -> list[str]:
        return [str(text) for text in self._words.seen(document, queries)]

    def _shown(self, text: str) -> str:
        return self.prompt.replace(PLACEHOLDER, text)

    def _key(self, text: str) -> str:
        """Labels are no part of it: with other labels the stored replies are read anew."""
        server = self.server
        again = (f"again {self._again}",) if self._again else ()
        parts = (server.address, server.model, self._strategy.key, self._shown(text))
        return key_of("1", *parts, *again)

    def _known(self, texts: Sequence[str]) -> dict[str, LabelAnswer]:
        """The answers that the cache holds in full, by text."""
        keys = {text: self._key(text) for text in texts}
        stored = self.cache.read(keys.values())
        return {
            text: self._strategy.answer(stored[key], self._spellings)
            for text, key in keys.items()
            if key in stored and not self._strategy.n_requests(stored[key])
        }

    def _ask_missing(self, texts: Sequence[str]) -> None:
        """Ask what the cache does not know; the first alone, to learn the server's capabilities."""
        known = self._known(texts)
        missing = [text for text in texts if text not in known]
        if not missing:
            return
        with self._kept(texts), self.server.session(self.retries) as session:
            alone = 0 if self.server.capabilities.answered else 1
            answers = [self._ask(session, text) for text in missing[:alone]]
            with ThreadPoolExecutor(self.concurrency) as pool:
                asking = [pool.submit(self._ask, session, text) for text in missing[alone:]]
                try:
                    for done in as_completed(asking):
                        answers.append(done.result())
                        if len(answers) == ENOUGH_TO_JUDGE:
                            check_named(answers, self._spellings, self.name)
                except BaseException:
                    session.stop.set()
                    pool.shutdown(wait=True, cancel_futures=True)
                    raise

    def _ask(self, session: Session, text: str) -> LabelAnswer:
        key = self._key(text)
        stored = self.cache.read([key]).get(key)
        if self._strategy.n_requests(stored):  # another process may have asked meanwhile
            for reply in self._strategy.ask(session, self._shown(text), stored):
                self.cache.write(key, reply)
                stored = reply
        assert stored is not None  # nothing was missing, or it was asked for
        return self._strategy.answer(stored, self._spellings)

    @contextmanager
    def _kept(self, texts: Sequence[str]) -> Iterator[None]:
        """Errors raised inside say how many answers are kept."""
        try:
            yield
        except (BudgetError, ClassifierError) as problem:
            kept = self._note_on_kept(len(self._known(texts)), len(texts))
            more = ("; raise the limit to go on",) if isinstance(problem, BudgetError) else ()
            raise type(problem)(*problem.args, *kept, *more) from None  # a cause may quote the key

    def _note_on_kept(self, known: int, n_texts: int) -> tuple[str | Setting, ...]:
        if not known:
            return ()
        answers = f"; {known} of {n_texts} answers are"
        if self.cache.path:
            return (f"{answers} in the cache {self.cache.path} and are not asked again",)
        kept = f"{answers} kept as long as this classifier is (", Setting("cache", "FILE")
        return *kept, " would keep them for the next run)"


def checked_prompt(prompt: str | None, labels: Mapping[str, str]) -> str:
    """The prompt, or one that names the answers; it must have a place for the text."""
    if prompt is None:
        answers = [
            answer if answer.strip() == label else f"{answer.strip()} for {label}"
            for label, answer in labels.items()
        ]
        listed = ", ".join(answers[:-1]) + " or " + answers[-1]
        instruction = f"Classify the text. Answer with {listed}, nothing else."
        return f"{instruction}\n\nText: {PLACEHOLDER}\n\nAnswer:"
    if not isinstance(prompt, str) or PLACEHOLDER not in prompt:
        raise InputError(
            f"the prompt {prompt!r} has no place for the text: write {PLACEHOLDER} where it belongs"
        )
    return prompt


def _estimated_tokens(text: str) -> int:
    return max(1, round(len(text.encode()) / BYTES_PER_TOKEN))
