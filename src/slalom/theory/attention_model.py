"""The single-layer attention classifier of Lopardo et al. (ICML 2024), in numpy.

    e_t = W_e[ξ_t] + W_p(t)              t = 1 … T_max, the text padded with the unknown token h
    k_t = W_k e_t,  v_t = W_v e_t,  q = W_q e_CLS
    α   = softmax(q·k / √d_att)          f = W_ℓ Σ_t α_t v_t            K heads are averaged

An embedding enters only through its products with two directions per head, r = W_kᵀq/√d_att
(its attention logit is r·e) and u = W_vᵀW_ℓᵀ (its contribution to the output is u·e), so

    α = softmax(r·e),    f = Σ_t α_t u·e_t,    ∇_{e_t} f = α_t u + α_t (u·e_t − f) r

The last is the gradient theorem of the paper. The torch module with the same weights is in
attention_torch.py, the classifier that methods can explain in attention_classifier.py, the
limits of LIME in lime_limit.py.

Absence is replacement: a unit that is not shown is replaced by h, as in the LIME of Lopardo et al.
Further occurrences of a unit fill the first free positions. A query is therefore a multiset: its
units keep the positions they have in the text, whatever their order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slalom.document import Document, FloatArray, IntArray, Queries
from slalom.errors import InputError

NUMBERS_PER_BATCH = 2**22
WordIds = NDArray[np.int64]  # (…, n_positions)


@dataclass(frozen=True, eq=False)
class AttentionModel:
    """The weights; K heads, D words, T_max positions."""

    words: tuple[str, ...]  # D of them; every other word is the unknown one
    W_e: FloatArray  # (D + 1, d_e), the last row is the unknown word h
    cls: FloatArray  # (d_e,)
    W_q: FloatArray  # (K, d_att, d_e)
    W_k: FloatArray  # (K, d_att, d_e)
    W_v: FloatArray  # (K, d_out, d_e)
    W_l: FloatArray  # (K, d_out)
    n_positions: int  # T_max

    def __post_init__(self) -> None:
        if len(set(self.words)) < len(self.words):
            raise InputError("the words of an attention model must differ from each other")
        if len(self.W_e) != len(self.words) + 1:
            raise InputError(
                f"W_e has {len(self.W_e)} rows for {len(self.words)} words: expected one for each "
                "word and one for the unknown word"
            )

    @property
    def unknown(self) -> int:
        """The id of h, which stands for words outside the vocabulary and for padding."""
        return len(self.words)

    @property
    def n_heads(self) -> int:
        return len(self.W_l)

    def positional_encoding(self) -> FloatArray:
        """W_p, (n_positions, d_e): sines and cosines of t = 1 … T_max."""
        return sinusoids(self.n_positions, self.W_e.shape[1])

    def key_direction(self) -> FloatArray:
        """r, (K, d_e): r·e is the attention logit of an embedding."""
        q = self.W_q @ self.cls  # (K, d_att)
        return np.asarray(np.einsum("ka,kae->ke", q, self.W_k) / np.sqrt(self.W_k.shape[1]))

    def value_direction(self) -> FloatArray:
        """u, (K, d_e): u·e is the output of a head whose attention rests on e alone."""
        return np.asarray(np.einsum("ko,koe->ke", self.W_l, self.W_v))

    def ids(self, words: Sequence[str]) -> WordIds:
        """(n_positions,): the ids of the words, then padding."""
        if len(words) > self.n_positions:
            raise InputError(
                f"the model has {self.n_positions} positions and was given {len(words)} words: "
                "shorten the text or build the model with more positions"
            )
        ids = np.full(self.n_positions, self.unknown, dtype=np.int64)
        ids[: len(words)] = [self._numbers.get(word, self.unknown) for word in words]
        return ids

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}

    def embed(self, ids: WordIds) -> FloatArray:
        """(…, n_positions) → (…, n_positions, d_e)."""
        return np.asarray(self.W_e[ids] + self.positional_encoding())

    def attention(self, ids: WordIds) -> FloatArray:
        """α, (…, K, n_positions)."""
        logits = self.attention_logits(ids)
        raw = np.exp(logits - logits.max(axis=-1, keepdims=True))
        return np.asarray(raw / raw.sum(axis=-1, keepdims=True))

    def attention_logits(self, ids: WordIds) -> FloatArray:
        """q·k_t/√d_att, (…, K, n_positions)."""
        return self._projected(ids, self.key_direction())

    def token_outputs(self, ids: WordIds) -> FloatArray:
        """W_ℓ v_t, (…, K, n_positions): what f would be if all attention rested on position t."""
        return self._projected(ids, self.value_direction())

    def _projected(self, ids: WordIds, directions: FloatArray) -> FloatArray:
        """Embeddings · directions, without forming the embeddings: word and position parts add."""
        of_words = self.W_e @ directions.T
        of_positions = self.positional_encoding() @ directions.T
        return np.asarray(np.moveaxis(of_words[ids] + of_positions, -1, -2))

    def __call__(self, ids: WordIds) -> FloatArray:
        """f, (…, n_positions) → (…)."""
        rows = ids.reshape(-1, self.n_positions)
        step = max(1, NUMBERS_PER_BATCH // (self.n_positions * self.n_heads))
        parts = [
            (self.attention(part) * self.token_outputs(part)).sum(axis=-1).mean(axis=-1)
            for part in (rows[at : at + step] for at in range(0, len(rows), step))
        ]
        return np.concatenate([np.zeros(0), *parts]).reshape(ids.shape[:-1])

    def gradient(self, ids: WordIds) -> FloatArray:
        """∇_{e_t} f in closed form: (n_positions,) → (n_positions, d_e)."""
        attention, outputs = self.attention(ids), self.token_outputs(ids)  # (K, n_positions)
        deviation = outputs - (attention * outputs).sum(axis=-1, keepdims=True)
        heads = (
            attention[:, :, None] * self.value_direction()[:, None, :]
            + (attention * deviation)[:, :, None] * self.key_direction()[:, None, :]
        )
        return np.asarray(heads.mean(axis=0))


@dataclass(frozen=True, eq=False)
class EncodedText:
    """The ids of a text's words, and the unit that each belongs to."""

    ids: WordIds  # (T,)
    units: IntArray  # (T,), −1 for words outside every unit, which are always shown


def encoded_text(document: Document) -> EncodedText:
    """What `AttentionClassifier.split` stored in the document."""
    if not isinstance(document.frame, EncodedText):
        raise InputError("this document was split by another classifier: split it with this one")
    return document.frame


def input_ids(model: AttentionModel, document: Document, queries: Queries) -> WordIds:
    """The word ids of each query: (n_queries, n_positions)."""
    encoded = encoded_text(document)
    n_times = document.untied().count(queries).astype(np.int64)  # (n_queries, n_units)
    always = np.ones((len(queries), 1), dtype=np.int64)
    shown = np.hstack([n_times, always])[:, encoded.units] > 0  # unit −1 is the last column
    ids = np.full((len(queries), model.n_positions), model.unknown, dtype=np.int64)
    ids[:, : len(encoded.ids)] = np.where(shown, encoded.ids, model.unknown)
    for row in np.nonzero((n_times > 1).any(axis=1))[0]:
        repeats = np.repeat(np.arange(document.n_units), np.maximum(n_times[row] - 1, 0))
        words = np.concatenate([encoded.ids[encoded.units == unit] for unit in repeats])
        free = np.ones(model.n_positions, dtype=bool)
        free[: len(encoded.ids)] = ~shown[row]
        positions = np.nonzero(free)[0]
        if len(positions) < len(words):
            raise InputError(
                f"a query repeats {len(words)} words and {len(positions)} positions are free: "
                "build the model with more positions"
            )
        ids[row, positions[: len(words)]] = words
    return ids


def gradient_scores(model: AttentionModel, ids: WordIds) -> dict[str, FloatArray]:
    """The paper's four scalar summaries of each position's gradient: (n_positions,) each."""
    gradients = model.gradient(ids)
    return {
        "G-avg": gradients.mean(axis=-1),
        "G-L1": np.abs(gradients).sum(axis=-1),
        "G-L2": np.sqrt((gradients**2).sum(axis=-1)),
        "G×I": (gradients * model.embed(ids)).sum(axis=-1),
    }


def attention_scores(model: AttentionModel, ids: WordIds) -> dict[str, FloatArray]:
    """Average and maximum over heads: (n_positions,) each."""
    attention = model.attention(ids)  # (K, n_positions)
    return {"α-avg": attention.mean(axis=0), "α-max": attention.max(axis=0)}


def sinusoids(n_positions: int, width: int) -> FloatArray:
    """W_p(t) as the paper prints it: sin and cos of t / T_max^(2i/d_e), (n_positions, width)."""
    positions = np.arange(1, n_positions + 1)[:, None]
    pairs = np.arange(1, (width + 1) // 2 + 1)
    angles = positions / float(n_positions) ** (2 * pairs / width)
    table = np.stack([np.sin(angles), np.cos(angles)], axis=-1)
    return np.asarray(table.reshape(n_positions, -1)[:, :width])


def random_attention_model(
    words: Sequence[str],
    rng: np.random.Generator,
    *,
    n_positions: int,
    width: int = 16,
    n_heads: int = 1,
    key_scale: float = 1.0,
) -> AttentionModel:
    """Gaussian weights; `key_scale` multiplies W_k and so the spread of the attention logits."""

    def draw(*shape: int) -> FloatArray:
        return rng.normal(size=shape)

    step = 1 / np.sqrt(width)
    return AttentionModel(
        words=tuple(words),
        W_e=draw(len(words) + 1, width),
        cls=draw(width),
        W_q=draw(n_heads, width, width) * step,
        W_k=draw(n_heads, width, width) * step * key_scale,
        W_v=draw(n_heads, width, width) * step,
        W_l=draw(n_heads, width) * step,
        n_positions=n_positions,
    )
