"""Transformers (and Mamba) with random weights: knows configurations, nothing of data."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BloomConfig,
    BloomForSequenceClassification,
    DistilBertConfig,
    DistilBertForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
    MambaConfig,
    MambaModel,
    MambaPreTrainedModel,
    PreTrainedModel,
)
from transformers.modeling_outputs import SequenceClassifierOutput
from transformers.models.mamba import modeling_mamba

PAD = 0  # of every vocabulary here
LABELS = {0: "negative", 1: "positive"}


@dataclass(frozen=True)
class Size:
    n_layers: int
    width: int
    n_heads: int
    n_tokens: int  # of the vocabulary
    context: int = 512


def bert(size: Size) -> PreTrainedModel:
    config = BertConfig(
        vocab_size=size.n_tokens,
        hidden_size=size.width,
        num_hidden_layers=size.n_layers,
        num_attention_heads=size.n_heads,
        intermediate_size=4 * size.width,
        max_position_embeddings=size.context,
        pad_token_id=PAD,
        id2label=LABELS,
    )
    return BertForSequenceClassification(config)


def distilbert(size: Size) -> PreTrainedModel:
    config = DistilBertConfig(
        vocab_size=size.n_tokens,
        dim=size.width,
        n_layers=size.n_layers,
        n_heads=size.n_heads,
        hidden_dim=4 * size.width,
        max_position_embeddings=size.context,
        pad_token_id=PAD,
        id2label=LABELS,
    )
    return DistilBertForSequenceClassification(config)


def gpt2(size: Size) -> PreTrainedModel:
    config = GPT2Config(
        vocab_size=size.n_tokens,
        n_embd=size.width,
        n_layer=size.n_layers,
        n_head=size.n_heads,
        n_positions=size.context,
        pad_token_id=PAD,
        bos_token_id=None,
        eos_token_id=None,
        id2label=LABELS,
    )
    return GPT2ForSequenceClassification(config)


def bloom(size: Size) -> PreTrainedModel:
    config = BloomConfig(
        vocab_size=size.n_tokens,
        hidden_size=size.width,
        n_layer=size.n_layers,
        n_head=size.n_heads,
        pad_token_id=PAD,
        bos_token_id=None,
        eos_token_id=None,
        id2label=LABELS,
    )
    return BloomForSequenceClassification(config)


def mamba(size: Size) -> PreTrainedModel:
    config = MambaConfig(
        vocab_size=size.n_tokens,
        hidden_size=size.width,
        num_hidden_layers=size.n_layers,
        pad_token_id=PAD,
        bos_token_id=None,
        eos_token_id=None,
        id2label=LABELS,
    )
    return MambaForSequenceClassification(config)


class MambaForSequenceClassification(MambaPreTrainedModel):
    """Mamba with a linear head on the mean of its states; transformers has none.

    Off the last token alone it learned nothing from random weights in three epochs.
    """

    def __init__(self, config: MambaConfig) -> None:
        super().__init__(config)
        self.backbone = MambaModel(config)
        self.score = nn.Linear(config.hidden_size, config.num_labels, bias=False)
        self.post_init()

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor | None = None
    ) -> SequenceClassifierOutput:
        found = self.backbone(input_ids, attention_mask=attention_mask, use_cache=False)
        states = found.last_hidden_state
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        shown = attention_mask[:, :, None].to(states.dtype)  # (n, width, 1)
        mean = (states * shown).sum(dim=1) / shown.sum(dim=1).clamp(min=1)
        return SequenceClassifierOutput(logits=self.score(mean))


def selective_scan(
    states: Tensor,
    step: Tensor,
    decay: Tensor,
    entry: Tensor,
    exit_: Tensor,
    *,
    D: Tensor,
    z: Tensor,
    delta_bias: Tensor,
    return_last_state: bool = False,
    **_: object,
) -> Tensor | tuple[Tensor, Tensor]:
    """Mamba's recurrence, one token after the other; the names are those transformers calls by.

    transformers' own, without its CUDA kernels, spreads every token's gradient over all tokens
    of all channels: its time grows with the square of the length.
    """
    step = functional.softplus(step + delta_bias[:, None])  # (batch, channel, token)
    state = states.new_zeros(())
    seen = []
    per_token = zip(step.unbind(2), states.unbind(2), entry.unbind(2), exit_.unbind(2), strict=True)
    for width, shown, writes, reads in per_token:
        written = (width * shown)[:, :, None] * writes[:, None, :]
        state = torch.exp(decay * width[:, :, None]) * state + written
        seen.append((state @ reads[:, :, None])[:, :, 0])
    read = (torch.stack(seen, dim=2) + states * D[:, None]) * functional.silu(z)
    return (read, state) if return_last_state else read


modeling_mamba.mamba_selective_scan = selective_scan

ARCHITECTURES: dict[str, Callable[[Size], PreTrainedModel]] = {
    "bert": bert,
    "distilbert": distilbert,
    "gpt2": gpt2,
    "bloom": bloom,
    "mamba": mamba,
}
ENCODERS = ("bert", "distilbert")  # those that read [CLS]
