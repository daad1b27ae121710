"""Proposition 4.1 and corollary 4.2 (Leemann et al.): without positions transformers cannot count.

Attention weights sum to 1, so a token that is repeated k times sends the same average through
every layer, whatever k is: F([τ]) = F([τ, τ]) = … for encoders and decoders of any depth. An
additive model F = b + Σ_i w_i(t_i) changes with every repetition. The best constant for the
repetitions of τ is their mean, so their variance bounds the error of any transformer without
positions from below:

    min_c  mean_k ( b + Σ_{i≤k} w_i(τ) − c )²  =  Var_k Σ_{i≤k} w_i(τ)  =  w² (C² − 1)/12

(the last for equal weights and k = 1 … C). For encoders more holds: any sequence t repeated as a
whole gives the output of t, since only the shares of its tokens matter.

Section 4.3 of the paper: the theorem does not hold with a [CLS] token before the text, or with
positions; how much they move the output is measured with the same functions.
"""

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from slalom.document import FloatArray
from slalom.errors import InputError

if TYPE_CHECKING:
    from torch import nn

POSITIONS = ("position_embeddings", "wpe")  # the tables of BERT, DistilBERT and GPT-2
N_TOKENS, WIDTH, N_HEADS, N_POSITIONS = 50, 32, 4, 128
WEIGHT_STD = 0.3  # of random weights: large enough that attention is far from uniform


def repeated_logits(
    model: "nn.Module",
    block: Sequence[int],
    n_times: Sequence[int],
    *,
    prefix: Sequence[int] = (),
) -> FloatArray:
    """The logits of the block shown k times after the prefix, for every k: (n, n_classes)."""
    import torch

    rows = []
    with torch.no_grad():
        for times in n_times:
            ids = torch.tensor([[*prefix, *(list(block) * times)]])
            answer = model(ids)
            logits = getattr(answer, "logits", answer)
            rows.append(logits[0].double().numpy())
    return np.array(rows)


def movement(logits: FloatArray) -> float:
    """How far the log-odds of two classes move: the largest minus the smallest."""
    return float(np.ptp(logits[:, 1] - logits[:, 0]))


def misfit_bound(weights: FloatArray) -> float:
    """A lower bound on the mean squared error of models without positions on repetitions.

    `weights` are those of the additive model by position: (C,) for one token, or (n_tokens, C),
    where the error is the mean over tokens. All lengths 1 … C have equal weight.
    """
    outputs = np.cumsum(np.atleast_2d(weights), axis=1)  # (n_tokens, C), less the offset
    return float(outputs.var(axis=1).mean())


def doubling_bound(sums: FloatArray) -> float:
    """The same for encoders on sequences of additive score Σ w and on their doubles."""
    pairs = np.stack([sums, 2 * np.asarray(sums)])  # a sequence and its double get one output
    return float(pairs.var(axis=0).mean())


def without_positions(model: "nn.Module") -> "nn.Module":
    """A copy whose position embeddings are 0."""
    import torch

    bare = copy.deepcopy(model)
    tables = [
        module for name, module in bare.named_modules() if name.rsplit(".", 1)[-1] in POSITIONS
    ]
    if not tables:
        raise InputError(
            f"{type(model).__name__} has no table of positions that could be switched off: "
            f"expected a module named {' or '.join(POSITIONS)}"
        )
    with torch.no_grad():
        for table in tables:
            cast(Any, table).weight.zero_()
    return bare


STACKS = {  # the family, and its own words for layers, width, heads, width of the net, positions
    "BERT": "Bert num_hidden_layers hidden_size num_attention_heads intermediate_size "
    "max_position_embeddings",
    "DistilBERT": "DistilBert n_layers dim n_heads hidden_dim max_position_embeddings",
    "GPT-2": "GPT2 n_layer n_embd n_head n_inner n_positions",
}


def random_stack(name: str, n_layers: int, seed: int) -> "nn.Module":
    """A real encoder or decoder with its head, in double precision and evaluation mode.

    The caller's random state is left alone.
    """
    import torch
    import transformers

    family, *words = STACKS[name].split()
    sizes = dict(zip(words, (n_layers, WIDTH, N_HEADS, 2 * WIDTH, N_POSITIONS), strict=True))
    config = getattr(transformers, f"{family}Config")(
        vocab_size=N_TOKENS,
        initializer_range=WEIGHT_STD,
        bos_token_id=None,
        eos_token_id=None,
        **sizes,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        made = getattr(transformers, f"{family}ForSequenceClassification")(config)
    return made.double().eval()  # type: ignore[no-any-return]
