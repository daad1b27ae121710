"""Proposition 5.1 as code: every SLALOM is a transformer (Leemann et al., appendix B.5).

Embeddings hold the table, e(τ) = [s(τ), v(τ), 0, …]. The query is a constant (bias √d_h on the
first coordinate), the key copies s, so every token attends to token τ with weight exp(s(τ)),
whatever the query; the value copies v, and P writes it to the third coordinate, which is 0 in the
embeddings, so that the skip connection adds nothing. (The proof in the paper has the constant on
the key side, where the softmax cancels it.) One head of the last layer does this; all other heads
and layers are the identity.

The same in BERT, which has layer norms and a tanh before its head:

- coordinates come in pairs x, −x, so that their mean is 0; a layer norm's ε is 2⁵² and its gain
  2²⁶ = √ε, so it is the identity to 1e-15;
- the tanh is applied to the log-odds times 2⁻²⁶, where it is linear to 1e-15;
- position and type embeddings are 0. [CLS] is the anchor; without an anchor its importance, and
  that of words outside the table, is so low that their attention is 0.
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
NO_ATTENTION = 800.0  # below the lowest importance: exp(−800) is 0 even in double precision
NORM_EPSILON = 2.0**52  # of the layer norms; a power of 4, so that its root is exact
TANH_SCALE = 2.0**-26
KEY_SCALE = 2.0**10  # embeddings hold s / KEY_SCALE, the key multiplies it back: small coordinates
S, V, OUT = 0, 1, 2  # coordinates: importance, value, output of the attention head
N_POSITIONS = 512


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
        max_position_embeddings=N_POSITIONS,
        layer_norm_eps=NORM_EPSILON,
        id2label={0: "negative", 1: "positive"},
        label2id={"negative": 0, "positive": 1},
        dtype="float64",
    )
    with torch.random.fork_rng(devices=[]):
        made: Any = cast(Any, BertForSequenceClassification)(config).double().eval()
    with torch.no_grad():
        for name, weights in made.named_parameters():
            weights.fill_(NORM_EPSILON**0.5 if name.endswith("LayerNorm.weight") else 0.0)
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
    attention.self.key.weight[0, 2 * S] = KEY_SCALE
    attention.self.value.weight[0, 2 * V] = 1.0
    attention.output.dense.weight[2 * OUT, 0] = 1.0
    attention.output.dense.weight[2 * OUT + 1, 0] = -1.0
    bert.bert.pooler.dense.weight[0, 2 * OUT] = TANH_SCALE
    bert.classifier.weight[1, 0] = 1 / TANH_SCALE


def _embeddings(model: SlalomModel) -> FloatArray:
    """[s, −s, v, −v], s scaled, of the special tokens and the words: (3 + n_words, 4)."""
    lowest = float(model.importances.min()) - NO_ATTENTION
    anchor = model.anchor or Anchor(0.0, lowest)
    s = np.concatenate([[lowest, lowest, anchor.importance], model.importances])
    v = np.concatenate([[0.0, 0.0, float(model.anchor_values())], model.values])
    return np.column_stack([s / KEY_SCALE, -s / KEY_SCALE, v, -v])


def _tokenizer(words: Sequence[str]) -> Any:
    """Splits at whitespace and puts [CLS] first."""
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
        model_max_length=N_POSITIONS,
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
