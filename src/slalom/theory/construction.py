"""Proposition 5.1 as code: every SLALOM is a transformer (Leemann et al., appendix B.5).

Embeddings hold the table, e(τ) = [s(τ), v(τ), 0, …]. The query is a constant (bias √d_h on the
first coordinate), the key copies s, so every token attends to token τ with exp(s(τ)), whichever
asks; the value copies v, and P writes it to the third coordinate, which the embeddings leave free,
so that the skip connection adds nothing. (The proof in the paper has the constant on the key side,
where the softmax cancels it.) One head of the last layer does this; all other heads and layers
pass the stream on.

The same in BERT, which has layer norms and a tanh before its head:

- coordinates come in pairs x, −x, so that a layer norm finds the mean 0; its ε is 2⁵² and its gain
  2²⁶, so it divides by what it multiplies with: linear to 1e-15;
- the tanh sees the log-odds times 2⁻²⁶, where it is linear to 1e-15;
- position and type embeddings are 0. [CLS] is the anchor; without one its importance, and that of
  words that are not in the table, is so low that no attention is left for it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from slalom.document import FloatArray
from slalom.errors import InputError
from slalom.surrogates.slalom.model import Anchor as Anchor
from slalom.surrogates.slalom.model import SlalomModel as SlalomModel

if TYPE_CHECKING:
    from torch import Tensor

    from slalom.theory.transformer import Transformer

SPECIAL = ("[PAD]", "[UNK]", "[CLS]")
SILENT = 800.0  # below the quietest word: exp(−800) is 0 even in double precision
LINEAR = 2.0**52  # the ε of layer norms, a power of 4
SMALL = 2.0**-26  # what the tanh sees of a log-odds
LOUD = 2.0**10  # importances are kept this much smaller, so that no coordinate is large
S, V, OUT = 0, 1, 2  # coordinates: importance, value, what was heard
N_PLACES = 512


def transformer_of(
    model: SlalomModel, *, n_heads: int = 1, n_layers: int = 1, causal: bool = False
) -> "Transformer":
    """The paper's transformer over token ids 0 … n−1 whose log-odds are those of the SLALOM."""
    import torch

    from slalom.theory.transformer import Transformer

    if model.anchor is not None or model.values.ndim > 1:
        raise InputError("the paper's transformer has no anchor and two classes: use bert_of")
    with torch.random.fork_rng(devices=[]):
        made = Transformer(
            len(model.values), head_width=3, n_heads=n_heads, n_layers=n_layers, causal=causal
        ).double()
    with torch.no_grad():
        for weights in made.parameters():
            weights.zero_()
        made.embedding.weight[:, S] = torch.from_numpy(model.importances)
        made.embedding.weight[:, V] = torch.from_numpy(model.values)
        last: Any = made.layers[-1]
        last.q.bias[0] = 3**0.5  # the scores are divided by √d_h
        last.k.weight[0, S] = 1.0
        last.v.weight[0, V] = 1.0
        last.project.weight[OUT, 0] = 1.0
        made.classify.weight[1, OUT] = 1.0
    return made


def bert_of(
    words: Sequence[str], model: SlalomModel, *, n_heads: int = 1, n_layers: int = 1
) -> tuple[Any, Any]:
    """A BERT classifier and its tokenizer whose log-odds are the SLALOM of these words."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    _check(words, model)
    config = BertConfig(
        vocab_size=len(SPECIAL) + len(words),
        hidden_size=6 * n_heads,  # three coordinates and their mirror images for each head
        num_hidden_layers=n_layers,
        num_attention_heads=n_heads,
        intermediate_size=6,
        max_position_embeddings=N_PLACES,
        layer_norm_eps=LINEAR,
        id2label={0: "negative", 1: "positive"},
        label2id={"negative": 0, "positive": 1},
        dtype="float64",
    )
    with torch.random.fork_rng(devices=[]):
        made: Any = cast(Any, BertForSequenceClassification)(config).double().eval()
    with torch.no_grad():
        for name, weights in made.named_parameters():
            weights.fill_(LINEAR**0.5 if name.endswith("LayerNorm.weight") else 0.0)
        _write(made, torch.from_numpy(_embeddings(model)))
    return made, _tokenizer(words)


def save_bert(
    folder: str | Path,
    words: Sequence[str],
    model: SlalomModel,
    *,
    n_heads: int = 1,
    n_layers: int = 1,
) -> None:
    """Write the BERT of a SLALOM to a folder that `slalom.load` opens."""
    made, tokenizer = bert_of(words, model, n_heads=n_heads, n_layers=n_layers)
    made.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def _write(bert: Any, embeddings: "Tensor") -> None:
    """The table, one attention head of the last layer, and the classification head."""
    bert.bert.embeddings.word_embeddings.weight[:, : embeddings.shape[1]] = embeddings
    attention = bert.bert.encoder.layer[-1].attention
    head_width = 6
    attention.self.query.bias[0] = head_width**0.5
    attention.self.key.weight[0, 2 * S] = LOUD
    attention.self.value.weight[0, 2 * V] = 1.0
    attention.output.dense.weight[2 * OUT, 0] = 1.0
    attention.output.dense.weight[2 * OUT + 1, 0] = -1.0
    bert.bert.pooler.dense.weight[0, 2 * OUT] = SMALL
    bert.classifier.weight[1, 0] = 1 / SMALL


def _embeddings(model: SlalomModel) -> FloatArray:
    """[s, −s, v, −v], s scaled, of the special tokens and the words: (3 + n_words, 4)."""
    silent = float(model.importances.min()) - SILENT
    anchor = model.anchor or Anchor(0.0, silent)
    s = np.concatenate([[silent, silent, anchor.importance], model.importances])
    v = np.concatenate([[0.0, 0.0, float(model.anchor_values())], model.values])
    return np.column_stack([s / LOUD, -s / LOUD, v, -v])


def _tokenizer(words: Sequence[str]) -> Any:
    """Words between spaces, [CLS] before them."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    ids = {word: number for number, word in enumerate([*SPECIAL, *words])}
    made = Tokenizer(models.WordLevel(ids, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A", special_tokens=[("[CLS]", ids["[CLS]"])]
    )
    return cast(Any, PreTrainedTokenizerFast)(
        tokenizer_object=made,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        model_max_length=N_PLACES,
    )


def _check(words: Sequence[str], model: SlalomModel) -> None:
    if len(words) != len(model.values) or len(set(words)) < len(words):
        raise InputError(
            f"{len(set(words))} different words and {len(model.values)} values: "
            "give one value and importance for each word"
        )
    odd = [word for word in words if word in SPECIAL or len(word.split()) != 1]
    if odd:
        raise InputError(f"{odd[0]!r} cannot be a word here: words stand between spaces")
    if model.values.ndim > 1:
        raise InputError("values must be log-odds of two classes, one number for each word")
