"""Where the time of many explanations goes, and how far it is from the model's own time.

    python -m benchmarks.speed [--model bundled|minilm|bert-base] [--documents 100]
        [--method slalom] [--queries 500] [--device cuda] [--precision bf16] [--out rows.json]

Random weights serve for speed: minilm is a BERT of 6 layers, 384 wide, bert-base one of 12
layers, 768 wide, both with the bundled tokenizer. Texts are made of its words, 25 to 250 tokens.
Total is `explain_many` from texts to explanations; inside is the time spent in the model's
forward passes in a second, instrumented run of the same queries. Best of --repeats runs.
"""

import argparse
import json
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import slalom

SIZES = {"minilm": (6, 384, 12), "bert-base": (12, 768, 12)}  # layers, width, heads


def main() -> None:
    given = _options().parse_args()
    warnings.simplefilter("ignore", slalom.SlalomWarning)  # random weights explain nothing
    classifier = _classifier(given.model, given.device, given.precision)
    texts = made_up_texts(classifier, given.documents, given.seed)
    settings: dict[str, Any] = {
        "method": given.method,
        "n_queries": given.queries,
        "units": "token",
        "progress": False,
    }
    slalom.explain_many(classifier, texts[:2], **settings)  # warm up
    total = min(_timed(classifier, texts, settings) for _ in range(given.repeats))
    inside, n_tokens = _inside(classifier, texts, settings)
    row = {
        "model": given.model,
        "device": given.device or "cpu",
        "precision": given.precision,
        "method": given.method,
        "queries": given.queries,
        "documents": given.documents,
        "tokens_per_document": n_tokens / given.documents,
        "documents_per_second": given.documents / total,
        "seconds": total,
        "seconds_in_model": inside,
        "ratio": total / inside,
    }
    print("  ".join(f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()))
    if given.out:
        with Path(given.out).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--model", default="bundled", choices=["bundled", *SIZES])
    options.add_argument("--documents", type=int, default=100)
    options.add_argument("--method", default="slalom", choices=list(slalom.METHODS))
    options.add_argument("--queries", type=int, default=500)
    options.add_argument("--device")
    options.add_argument("--precision")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--repeats", type=int, default=2)
    options.add_argument("--out", metavar="FILE", help="add a line of JSON to this file")
    return options


def _classifier(name: str, device: str | None, precision: str | None) -> Any:
    bundled: Any = slalom.load(device=device, precision=precision)
    if name == "bundled":
        return bundled
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    layers, width, heads = SIZES[name]
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(bundled.tokenizer),
        num_hidden_layers=layers,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
    )
    model = BertForSequenceClassification(config).eval().to(device or "cpu")
    return slalom.HuggingFaceClassifier(model, bundled.tokenizer, precision=precision, name=name)


def made_up_texts(classifier: Any, n: int, seed: int) -> list[str]:
    """Words of the vocabulary at random, 23 to 248 of them: two special tokens come on top."""
    rng = np.random.default_rng(seed)
    words = sorted(w for w in classifier.tokenizer.get_vocab() if w.isalpha() and len(w) > 2)
    return [" ".join(rng.choice(words, size=rng.integers(23, 249))) for _ in range(n)]


def _timed(classifier: Any, texts: list[str], settings: dict[str, Any]) -> float:
    start = perf_counter()
    slalom.explain_many(classifier, texts, **settings)
    return perf_counter() - start


def _inside(classifier: Any, texts: list[str], settings: dict[str, Any]) -> tuple[float, int]:
    """Seconds in the model, from its first layer to its logits, and the tokens it read."""
    import torch

    spent, started = [0.0], [0.0]
    model = getattr(classifier, "_asked_model", classifier.model)

    def now() -> float:
        if next(model.parameters()).is_cuda:
            torch.cuda.synchronize()
        return perf_counter()

    def before(*_: object) -> None:
        started[0] = now()

    def after(*_: object) -> None:
        spent[0] += now() - started[0]

    hooks = [model.register_forward_pre_hook(before), model.register_forward_hook(after)]
    try:
        explained = slalom.explain_many(classifier, texts, **settings)
    finally:
        for hook in hooks:
            hook.remove()
    return spent[0], sum(e.quality.n_tokens for e in explained)


if __name__ == "__main__":
    main()
