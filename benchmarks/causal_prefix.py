"""What the reused prompt saves: seconds for the queries of one explanation, with and without.

    python -m benchmarks.causal_prefix                     a random Llama of 6 layers
    python -m benchmarks.causal_prefix --gguf FILE.gguf    a real model (needs gguf, accelerate)

Both runs ask the same queries of the same text in one process; only the memory of the prompt
is switched off for the second. Scores must agree.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.inside import FloatArray, SubsetSizes, continuations
from slalom import CausalClassifier

TEXT = (
    "The first hour drags, and nobody in it seems to want anything. Then the sister arrives, "
    "the film wakes up, and what follows is as warm and funny as anything I have seen this year."
)
SHORT = "Review: {text}\nVerdict:"
SHOTS = "".join(
    f"Review: {review}\nVerdict:{verdict}\n\n"
    for review, verdict in (
        ("A great film, the acting is wonderful and I laughed all the way home.", " good"),
        ("Two hours of my life that I will not get back. Avoid.", " bad"),
        ("The music is lovely, the story is better, the ending is perfect.", " good"),
        ("Dull, loud, and far too long; even the popcorn was disappointing.", " bad"),
    )
)
LABELS = {"negative": " bad", "positive": " good"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gguf", type=Path, help="a quantised model in one file")
    parser.add_argument("--queries", type=int, default=200)
    given = parser.parse_args()
    model, tokenizer = _random_llama() if given.gguf is None else _from_gguf(given.gguf)
    for name, prompt in (("one line", SHORT), ("four examples", SHOTS + SHORT)):
        classifier = CausalClassifier(model, tokenizer, LABELS, prompt)
        document = classifier.split(TEXT)
        queries = SubsetSizes().sample(document, given.queries, np.random.default_rng(0)).queries

        def ask(c: Any = classifier, d: Any = document, q: Any = queries) -> FloatArray:
            return c.logits([(d, q)])[0]  # type: ignore[no-any-return]

        classifier.logits([(document, queries[:4])])  # warm up
        with_memory, one = _timed(ask)
        with patch.object(continuations, "common_start", lambda rows, n_last: 0):
            without, other = _timed(ask)
        print(
            f"{classifier.name}, prompt of {name}: {document.overhead} tokens around "
            f"{document.n_units} units, {len(queries)} queries: {without:.2f} s without, "
            f"{with_memory:.2f} s with the memory ({without / with_memory:.1f} times faster), "
            f"scores within {np.abs(one - other).max():.0e}"
        )


def _timed(ask: Callable[[], FloatArray]) -> tuple[float, FloatArray]:
    start = perf_counter()
    answers = ask()
    return perf_counter() - start, answers


def _random_llama() -> tuple[Any, Any]:
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _byte_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=256,
        intermediate_size=768,
        num_hidden_layers=6,
        num_attention_heads=4,
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config).eval(), tokenizer


def _byte_tokenizer() -> Any:
    """A small byte-level tokenizer, trained on the texts of this file."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    made.train_from_iterator([TEXT, SHOTS], trainer)
    return PreTrainedTokenizerFast(tokenizer_object=made, bos_token="<s>")


def _from_gguf(file: Path) -> tuple[Any, Any]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(
        file.parent, gguf_file=file.name, dtype=torch.float32
    )
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    return model.eval(), tokenizer


if __name__ == "__main__":
    main()
