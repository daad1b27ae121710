"""The shapes of the students that were tried, and how one starts from its teacher's weights."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from transformers import (
    BertForSequenceClassification,
    ElectraConfig,
    ElectraForSequenceClassification,
)

from experiments.vocabulary import CONTEXT, PAD, Expansion


@dataclass(frozen=True)
class Shape:
    width: int
    n_layers: int
    n_heads: int
    inner: int
    learning_rate: float
    embedding: int = 128


SHAPES = {
    "2x256": Shape(256, 2, 4, 1024, learning_rate=1e-3),
    "4x256": Shape(256, 4, 4, 1024, learning_rate=8e-4),
    "2x384": Shape(384, 2, 12, 1536, learning_rate=5e-4),
    "3x384": Shape(384, 3, 12, 896, learning_rate=5e-4),
    "tiny": Shape(32, 1, 2, 64, learning_rate=2e-3, embedding=16),
}


def student(
    shape: Shape, teacher: BertForSequenceClassification, expansion: Expansion
) -> ElectraForSequenceClassification:
    """Embeddings started from the teacher's; layers too where the width is the teacher's."""
    config = ElectraConfig(
        vocab_size=len(expansion.lengths),
        embedding_size=shape.embedding,
        hidden_size=shape.width,
        num_hidden_layers=shape.n_layers,
        num_attention_heads=shape.n_heads,
        intermediate_size=shape.inner,
        max_position_embeddings=CONTEXT,
        pad_token_id=PAD,
        id2label={0: "negative", 1: "positive"},
        label2id={"negative": 0, "positive": 1},
        architectures=["ElectraForSequenceClassification"],
    )
    model = ElectraForSequenceClassification(config)
    with torch.no_grad():
        start_embeddings(model, teacher, expansion)
        if shape.width == teacher.config.hidden_size:
            start_layers(model, teacher)
    return model


def start_embeddings(
    model: ElectraForSequenceClassification,
    teacher: BertForSequenceClassification,
    expansion: Expansion,
) -> None:
    """Each own piece: the mean of its teacher pieces on their main axes."""
    theirs, own = teacher.bert.embeddings, model.electra.embeddings
    table = theirs.word_embeddings.weight.double().cpu()
    pieces, lengths = expansion.pieces.cpu(), expansion.lengths.cpu()
    inside = torch.arange(pieces.shape[1]) < lengths[:, None]
    words = (table[pieces] * inside[..., None]).sum(dim=1) / lengths.clamp(min=1)[:, None]
    axes = torch.linalg.svd(words, full_matrices=False).Vh[: model.config.embedding_size]
    places = theirs.position_embeddings.weight.double().cpu()
    kinds = theirs.token_type_embeddings.weight.double().cpu()
    own.word_embeddings.weight.copy_(words @ axes.T)
    own.position_embeddings.weight.copy_(places @ axes.T)
    own.token_type_embeddings.weight.copy_(kinds @ axes.T)
    if hasattr(model.electra, "embeddings_project"):
        full = nn.functional.layer_norm((words + kinds[0]).float(), words.shape[1:])
        full = full * theirs.LayerNorm.weight.cpu() + theirs.LayerNorm.bias.cpu()
        narrow = nn.functional.layer_norm(((words + kinds[0]) @ axes.T).float(), (len(axes),))
        start_projection(model.electra.embeddings_project, narrow[1:], full[1:])


def start_projection(projection: nn.Linear, narrow: Tensor, full: Tensor) -> None:
    """From narrow rows to full ones by least squares; to their main axes where width is short."""
    if projection.out_features < full.shape[1]:
        full = full @ torch.linalg.svd(full, full_matrices=False).Vh[: projection.out_features].T
    design = torch.cat([narrow, torch.ones(len(narrow), 1)], dim=1)
    design, full = design.double(), full.double()
    # Normalised rows sum to 0, so the columns depend on each other: a ridge settles it.
    gram = design.T @ design + 1e-3 * len(design) * torch.eye(design.shape[1]).double()
    solution = torch.cholesky_solve(design.T @ full, torch.linalg.cholesky(gram))
    projection.weight.copy_(solution[:-1].T)
    projection.bias.copy_(solution[-1])


def start_layers(
    model: ElectraForSequenceClassification, teacher: BertForSequenceClassification
) -> None:
    """Evenly spaced layers, the last one among them, with the inner units that matter most."""
    own, theirs = model.electra.encoder.layer, teacher.bert.encoder.layer
    for place, layer in enumerate(own):
        source = theirs[round((place + 1) * len(theirs) / len(own)) - 1]
        layer.attention.load_state_dict(source.attention.state_dict())
        into, out = source.intermediate.dense, source.output.dense
        effect = into.weight.norm(dim=1) * out.weight.norm(dim=0)
        kept = effect.topk(layer.intermediate.dense.out_features).indices.sort().values
        layer.intermediate.dense.weight.copy_(into.weight[kept])
        layer.intermediate.dense.bias.copy_(into.bias[kept])
        layer.output.dense.weight.copy_(out.weight[:, kept])
        layer.output.dense.bias.copy_(out.bias)
        layer.output.LayerNorm.load_state_dict(source.output.LayerNorm.state_dict())
