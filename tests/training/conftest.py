"""A folder of data so small that everything can be trained on it in a second."""

import json

import pytest
import torch
from training.architectures import ARCHITECTURES, Size
from training.models import Bench
from training.vocabulary import train_vocabulary

TEXTS = [("A good film, I like it.", 1), ("A bad film. I hate it!", 0)] * 4
SNIPPETS = ["1\t2.0\tGood fun.", "2\t-2.0\tBad mess.", "3\t-1.0\ta bad film i hate it"]


@pytest.fixture
def bench(tmp_path):
    """Eight tiny reviews a split, and a MiniLM of two narrow layers."""
    (tmp_path / "imdb").mkdir()
    lines = "\n".join(json.dumps({"text": text, "label": label}) for text, label in TEXTS)
    for split in ("train", "test"):
        (tmp_path / "imdb" / f"{split}.jsonl").write_text(lines)
    rows = "\n".join(f'"{text}",{label}' for text, label in TEXTS)
    (tmp_path / "rotten_tomatoes.csv").write_text(f"text,label\n{rows}\n")
    (tmp_path / "snippets.txt").write_text("\n".join(SNIPPETS))
    tokenizer = train_vocabulary([text for text, _ in TEXTS], 60)
    torch.manual_seed(0)
    model = ARCHITECTURES["bert"](Size(2, 16, 2, len(tokenizer)))
    model.bert.save_pretrained(tmp_path / "minilm")
    tokenizer.save_pretrained(tmp_path / "minilm")
    return Bench(tmp_path, tmp_path / "cache", small=True)
