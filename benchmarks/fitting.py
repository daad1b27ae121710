"""What fitting costs beside asking: the share of a 500-query explanation that is not the model.

    python -m benchmarks.fitting [--device cuda] [--queries 500] [--repeats 5]

Sampling, choice of ridges, Newton steps, read-outs, errors and Shapley values all count as
fitting. Best of several runs, bundled model, one review of about 120 tokens.
"""

import argparse
from time import perf_counter

import slalom
from slalom.explainers.methods import METHODS

REVIEW = (
    "I went in expecting very little and came out humming. The plot is nothing new: a tired "
    "detective, a missing girl, a town that would rather forget. But the two leads are so good "
    "together, and the camera so patient with their faces, that I stopped caring where it was "
    "going. The last half hour loses its nerve, with a chase nobody needed and a villain who "
    "explains himself twice. The music is awful throughout. Still, there is a scene on a ferry, "
    "shot in one take, that I would not trade for most films I saw this year. Flawed, warm and "
    "strangely moving; see it with somebody you have quarrelled with."
)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--device")
    options.add_argument("--queries", type=int, default=500)
    options.add_argument("--repeats", type=int, default=5)
    options.add_argument("--method", default="slalom", choices=list(METHODS))
    given = options.parse_args()
    classifier = slalom.load(device=given.device)
    document = classifier.split(REVIEW)
    asking: list[float] = []
    plain = type(classifier).logits

    def timed(self: slalom.HuggingFaceClassifier, asked: list[object]) -> object:
        start = perf_counter()
        answers = plain(self, asked)  # type: ignore[arg-type]
        asking.append(perf_counter() - start)
        return answers

    type(classifier).logits = timed  # type: ignore[assignment,method-assign]
    whole = []
    for _ in range(given.repeats + 1):  # the first run warms up
        start = perf_counter()
        slalom.explain(classifier, REVIEW, given.method, n_queries=given.queries)
        whole.append(perf_counter() - start)
    total, asked = min(whole[1:]), min(asking[1:])
    print(f"{document.n_units} tokens, {given.queries} queries, {given.method}: {total:.3f} s")
    print(f"asking {asked:.3f} s, fitting {total - asked:.3f} s: {1 - asked / total:.1%} of it")


if __name__ == "__main__":
    main()
