"""How the time of an explanation grows with the length of the text.

The classifier is nearly free, so that all of it is ours:

    python -m benchmarks.long_texts [--words 300,1000,3000,5000] [--units word]

TF-IDF and a logistic regression over words drawn by Zipf's law, so that half of a text's words
occur again. Prints one line per length: words, units, questions, R², seconds, and the seconds of
a dry run.
"""

import argparse
import warnings
from time import perf_counter, process_time

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import slalom
from slalom.classifiers.load import as_classifier
from slalom.explainers.base import Request
from slalom.explainers.dry_run import dry_run
from slalom.explainers.splitting import document_of

N_WORDS, N_TEXTS = 20_000, 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--words", default="300,1000,3000,5000")
    parser.add_argument("--units", choices=["word", "sentence"], help="default: the package's")
    parser.add_argument("--method", default="slalom")
    given = parser.parse_args()
    warnings.simplefilter("ignore", slalom.SlalomWarning)
    rng = np.random.default_rng(0)
    texts = [_text(rng, 200) for _ in range(N_TEXTS)]
    model = make_pipeline(TfidfVectorizer(), LogisticRegression(C=10.0))
    model.fit(texts, rng.integers(0, 2, size=N_TEXTS))
    print("| words | units | questions | R² | seconds | of a processor | dry run |")
    print("|---|---|---|---|---|---|---|")
    for n_words in map(int, given.words.split(",")):
        print(_row(model, _text(rng, n_words), given.units, given.method), flush=True)


def _text(rng: np.random.Generator, n_words: int) -> str:
    """Sentences of about 18 words by Zipf's law."""
    words = [f"w{number}" for number in np.minimum(rng.zipf(1.3, size=n_words), N_WORDS)]
    return " ".join(w + ("." if n % 18 == 17 else "") for n, w in enumerate(words))


def _row(model: object, text: str, units: str | None, method: str) -> str:
    classifier, start = as_classifier(model), perf_counter()
    document = document_of(classifier, text, units)
    dry_run(slalom.METHODS[method], classifier, document, request=Request())
    foretold, start, worked = perf_counter() - start, perf_counter(), process_time()
    e = slalom.explain(classifier, text, method, units=units)
    seconds, worked = perf_counter() - start, process_time() - worked
    r2 = "–" if e.quality.r2 is None else f"{e.quality.r2:.2f}"
    cells = (len(text.split()), len(e.units), e.quality.n_queries, r2)
    return f"| {' | '.join(map(str, cells))} | {seconds:.1f} | {worked:.1f} | {foretold:.1f} |"


if __name__ == "__main__":
    main()
