"""The bundled classifier's own vocabulary: knows word pieces, nothing of weights.

Words are lower-cased and keep their apostrophes ("don't" is one word); the pieces are trained on
the training reviews. `Expansion` says which pieces of a teacher each own piece stands for, so one
stream of own ids feeds student and teacher alike.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from torch import Tensor
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

SPECIAL = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
PAD, UNK, CLS, SEP, MASK = range(5)  # the order of SPECIAL
CONTEXT = 512
WORD = r"[\p{L}\p{N}]+(?:'\p{L}+)*|[^\s]"


def train_vocabulary(texts: Iterable[str], n_pieces: int) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL["unk"], max_input_chars_per_word=60))
    tokenizer.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(r"<br\s*/?>"), " "),
            normalizers.Replace("\u2019", "'"),
            normalizers.BertNormalizer(lowercase=True),
        ]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)
    special = list(SPECIAL.values())
    trainer = trainers.WordPieceTrainer(
        vocab_size=n_pieces, limit_alphabet=100, special_tokens=special, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(SPECIAL["cls"], CLS), (SPECIAL["sep"], SEP)],
    )
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return as_fast(tokenizer)


def as_fast(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=SPECIAL["pad"],
        unk_token=SPECIAL["unk"],
        cls_token=SPECIAL["cls"],
        sep_token=SPECIAL["sep"],
        mask_token=SPECIAL["mask"],
        model_max_length=CONTEXT,
    )


def write_tokenizer(tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Two JSON files, without the white space and the class names of one library version."""
    folder.mkdir(parents=True, exist_ok=True)
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    state["truncation"] = state["padding"] = None  # left behind by earlier calls
    compact = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
    (folder / "tokenizer.json").write_text(compact, encoding="utf-8")
    settings: dict[str, str | int] = {f"{name}_token": text for name, text in SPECIAL.items()}
    settings |= {"model_max_length": CONTEXT, "tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n")


@dataclass(frozen=True)
class Expansion:
    pieces: Tensor  # (n_own, longest) teacher ids, 0 beyond the length
    lengths: Tensor  # (n_own,) 0 for padding

    def to(self, device: torch.device) -> "Expansion":
        return Expansion(self.pieces.to(device), self.lengths.to(device))

    def __call__(self, ids: Tensor) -> Tensor:
        """Own ids (n, own width) → teacher ids (n, width), cut at the teacher's context."""
        lengths = self.lengths[ids]  # (n, own width)
        ends = lengths.cumsum(dim=1)
        width = min(int(ends[:, -1].max()), CONTEXT)
        inside = torch.arange(self.pieces.shape[1], device=ids.device) < lengths[..., None]
        place = (ends - lengths)[..., None] + torch.arange(inside.shape[2], device=ids.device)
        row = torch.arange(len(ids), device=ids.device)[:, None, None].expand_as(place)
        inside &= place < width
        expanded = ids.new_zeros(len(ids), width)
        expanded[row[inside], place[inside]] = self.pieces[ids][inside]
        return expanded


def expansion(own: PreTrainedTokenizerBase, teacher: PreTrainedTokenizerBase) -> Expansion:
    by_name = {SPECIAL[name]: getattr(teacher, f"{name}_token_id") for name in SPECIAL}
    table: list[list[int]] = [[] for _ in range(len(own))]
    for piece, row in own.get_vocab().items():
        if piece == SPECIAL["pad"]:
            continue
        table[row] = [by_name[piece]] if piece in by_name else teacher_ids(piece, teacher)
    longest = max(map(len, table))
    padded = [ids + [0] * (longest - len(ids)) for ids in table]
    return Expansion(torch.tensor(padded), torch.tensor([len(ids) for ids in table]))


def teacher_ids(piece: str, teacher: PreTrainedTokenizerBase) -> list[int]:
    if not piece.startswith("##"):
        return teacher.encode(piece, add_special_tokens=False) or [teacher.unk_token_id]
    inner, rest = re.match(r"(\w*)(.*)", piece[2:]).groups()
    ids = continued(inner, teacher.get_vocab()) if inner else []
    return (ids + teacher.encode(rest, add_special_tokens=False)) or [teacher.unk_token_id]


def continued(text: str, vocabulary: dict[str, int]) -> list[int]:
    """Longest match first, every piece inside a word; empty where no piece fits."""
    ids = []
    while text:
        ends = range(len(text), 0, -1)
        end = next((end for end in ends if "##" + text[:end] in vocabulary), None)
        if end is None:
            return []
        ids.append(vocabulary["##" + text[:end]])
        text = text[end:]
    return ids
