"""What explanations are good for: a model behind an API, and words that should not matter.

The chat model is reached through the client for OpenAI-compatible servers. Where no address is
given in SLALOM_CHAT_URL, a small server of this machine answers with the bundled classifier's
log-probabilities: then the truth is known, and what is measured is what the way through an API
costs. The case study looks for words that a classifier listens to though they say nothing, in
fifteen reviews joined, and adds them to reviews of the other class until the prediction flips.
"""

import json
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
from numpy.typing import NDArray

import slalom
from experiments.bench import Bench, Part, Record
from experiments.classifiers import classifier_of, counted, needs
from experiments.reviews import documents, fitting
from experiments.table import Cell, Number, Table, mean_of
from slalom.metrics.agreement import spearman

Records = Mapping[str, Record]
PROMPT = "Is this review positive? Answer 1 for yes, 0 for no.\n\n{text}"
N_JOINED = 15
MAX_ADDED = 20
N_SHOWN = 8  # of the words, in the table
HARMLESS = 0.35  # of a Naive-Bayes weight: below, a word says nothing by itself


def black_box_parts(bench: Bench) -> dict[str, Part]:
    return {"black-box/bundled": Part(through_an_api)}


def through_an_api(bench: Bench) -> Record:
    classifier = classifier_of(bench, "bundled")
    texts = documents(bench)[: max(2, bench.scale.n_documents // 10)]
    budget, found = min(500, bench.scale.budget), []
    with served(classifier) as (url, model):
        chat = slalom.ChatClassifier(
            model=model, labels={"negative": "0", "positive": "1"}, base_url=url, prompt=PROMPT
        )
        for text in texts:
            there = slalom.explain(chat, text, target="positive", n_queries=budget)
            here = slalom.explain(
                classifier, text, target="positive", units=there.spans, n_queries=budget
            )
            found.append(
                {
                    "n_queries": there.quality.n_queries,
                    "r2": there.quality.r2,
                    "rank": spearman(there.scores["shapley"], here.scores["shapley"]),
                    "log_odds": [float(e.logits[1] - e.logits[0]) for e in (there, here)],
                }
            )
    return {"model": model, "documents": found}


def black_box(records: Records) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for record in records.values():
        for number, d in enumerate(record["documents"], start=1):
            there, here = (Number(value, digits=3) for value in d["log_odds"])
            r2 = Number(d["r2"]) if d["r2"] is not None else "–"
            rows.append((str(number), str(d["n_queries"]), there, here, r2, Number(d["rank"])))
    return Table(
        title="Black box: a classifier behind a chat API",
        columns=(
            "review",
            "queries",
            "log-odds through the API",
            "asked directly",
            "R² (leave-one-out)",
            "rank correlation of Shapley values with asking directly",
        ),
        rows=tuple(rows),
        differs=(
            "The paper asks GPT-4. Here a server on this machine that answers with the "
            "bundled classifier's log-probabilities, or the one in SLALOM_CHAT_URL and "
            "SLALOM_CHAT_MODEL.",
        ),
        notes=(
            "What going through an API costs: a chat model is sent text without the words that "
            "are left out, a classifier asked directly gets tokens; beyond that both are asked "
            "the same.",
        ),
    )


@contextmanager
def served(classifier: Any) -> Iterator[tuple[str, str]]:
    """The address and model of a chat server."""
    if url := os.environ.get("SLALOM_CHAT_URL"):
        yield url, os.environ.get("SLALOM_CHAT_MODEL", "default")
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Chat, classifier))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1", "bundled"
    finally:
        server.shutdown()
        server.server_close()


class _Chat(BaseHTTPRequestHandler):
    """Answers "0" or "1" with the log-probabilities of a classifier."""

    lock = threading.Lock()

    def __init__(self, classifier: Any, *arguments: Any) -> None:
        self.classifier = classifier
        super().__init__(*arguments)

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = asked["messages"][-1]["content"].removeprefix(PROMPT.format(text=""))
        with self.lock:
            logits = self.classifier([text or " "])[0]
        chances = logits - np.logaddexp.reduce(logits)
        tops = [
            {"token": str(k), "logprob": float(chances[k]), "bytes": None}
            for k in np.argsort(-chances)
        ]
        entry = {**tops[0], "top_logprobs": tops}
        answer = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": asked["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": tops[0]["token"]},
                    "logprobs": {"content": [entry]},
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def case_parts(bench: Bench) -> dict[str, Part]:
    names = dict.fromkeys((*bench.scale.models, "bundled"))
    return {
        f"case-study/{name}": Part(partial(case_study, model=name), after=needs(name))
        for name in names
    }


def case_study(bench: Bench, *, model: str) -> Record:
    """Loud words that say nothing by themselves, and how many of them flip a prediction."""
    classifier = classifier_of(bench, model)
    texts = documents(bench)
    joined = " ".join(fitting(bench, "train")[:N_JOINED])

    def logits(asked: list[str]) -> Any:  # short sequences; of the long text itself the beginning
        return classifier([text[:2000] for text in asked])

    short = slalom.FunctionClassifier(logits, labels=["negative", "positive"], gives="logits")
    found = slalom.explain(
        short,
        joined,
        "slalom-eff",
        target=1,
        n_queries=3 * bench.scale.budget,
        units="word",
        seed=bench.seed,
    )
    vocabulary = _weights(classifier, counted(bench, model), found.units)
    said = _odds(classifier, texts)
    record: Record = {"model": model, "r2": found.quality.r2, "sides": []}
    for side, sign in (("positive", 1), ("negative", -1)):
        words = _spurious(found, vocabulary, sign)
        others = [text for text, odds in zip(texts, said, strict=True) if sign * odds < 0]
        record["sides"].append(
            {
                "side": side,
                "words": words[:MAX_ADDED],
                "n_reviews": len(others),
                "flipped": [flips(classifier, text, words[:MAX_ADDED], sign) for text in others],
                "at_random": [
                    flips(classifier, text, _plain(vocabulary, k), sign)
                    for k, text in enumerate(others)
                ],
            }
        )
    return record


def _weights(
    classifier: Any, table: Mapping[Any, float], words: tuple[str, ...]
) -> dict[str, float]:
    """What Naive Bayes says of each word; of several tokens the sum, NaN where it is unknown."""
    found = {}
    for word in dict.fromkeys(unit.strip() for unit in words):
        if word.isalpha():
            keys = classifier.split(word).keys
            found[word] = sum(table.get(key, float("nan")) for key in keys)
    return found


def _spurious(found: Any, vocabulary: Mapping[str, float], sign: int) -> list[str]:
    """Words by their linearised score, without those that do say something."""
    score = {
        unit.strip(): sign * value
        for unit, value in zip(found.units, found.scores["linearised"], strict=True)
    }
    harmless = [w for w in vocabulary if abs(vocabulary[w]) < HARMLESS and score.get(w, 0) > 0]
    return sorted(harmless, key=lambda word: -score[word])


def _plain(vocabulary: Mapping[str, float], seed: int) -> list[str]:
    """As many harmless words, drawn at random."""
    words = [word for word, weight in vocabulary.items() if abs(weight) < HARMLESS]
    rng = np.random.default_rng(seed)
    return [words[at] for at in rng.permutation(len(words))[:MAX_ADDED]]


def flips(classifier: Any, text: str, words: list[str], sign: int) -> int | None:
    """How many words, added in turn before the text, flip its prediction; None: all do not."""
    tries = [" ".join(words[:n]) + " " + text for n in range(1, len(words) + 1)]
    flipped = np.flatnonzero(sign * _odds(classifier, tries) > 0) if tries else ()
    return int(flipped[0]) + 1 if len(flipped) else None


def _odds(classifier: Any, texts: list[str]) -> NDArray[np.float64]:
    read = [classifier.split(text, too_long="truncate") for text in texts]
    logits = np.concatenate(classifier.logits([(document, document.full()) for document in read]))
    return np.asarray(logits[:, 1] - logits[:, 0])


def case_table(records: Records) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for record in records.values():
        for side in record["sides"]:
            done, plain = (
                [n for n in side[how] if n is not None] for how in ("flipped", "at_random")
            )
            tries = sum(n or len(side["words"]) for n in side["flipped"])
            rows.append(
                (
                    record["model"],
                    side["side"],
                    " ".join(side["words"][:N_SHOWN]),
                    f"{len(done)} of {side['n_reviews']}",
                    mean_of(done, digits=1),
                    str(tries),
                    f"{len(plain)} of {side['n_reviews']}",
                )
            )
    return Table(
        title="Case study: words that should not matter, and predictions they flip",
        columns=(
            "model",
            "towards",
            f"words found (the first {N_SHOWN})",
            "reviews flipped",
            "words needed where it flipped",
            "tries in all",
            "flipped by as many random harmless words",
        ),
        rows=tuple(rows),
        differs=("Models of our own training; the paper shows one flipped review.",),
        notes=(
            f"Words of {N_JOINED} joined reviews by exp(s)·v (SLALOM-eff), without those whose "
            f"Naive-Bayes weight exceeds {HARMLESS}; up to {MAX_ADDED} of them are put before "
            "every review of the other class, one after the other. Each added word is a try. "
            "Smoothing draws the weights of rare words to 0, so that some which do say something "
            "(incomprehensible) count as harmless; random words come from the same list.",
        ),
    )
