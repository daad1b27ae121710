"""attention-lrp against the package lxt of its authors: `python -m benchmarks.relevance FOLDER …`.

FOLDERs hold a BERT or a GPT-2 that classifies. lxt wants an older transformers than slalom, so
both stand in a folder of their own, before those of the environment (torch, slalom's own):

    pip install --no-deps --target LXT lxt==2.1 transformers==4.52.4 tokenizers==0.21.4 \\
        huggingface_hub==0.36.0
    PYTHONPATH=LXT:src:. python -m benchmarks.relevance FOLDER … --data DATA

Relevances per token of the log-odds, in double precision, behind the positions, by slalom and then,
once lxt has put its rules into transformers, by lxt. Prints one row per model: the distance of the
two relative to the length of lxt's, the largest over the reviews, and their smallest correlation.
"""

import argparse
import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import slalom
from benchmarks.reviews import reviews

MAKES = ["input_ids", "attention_mask"]  # an older transformers gives GPT-2 types of tokens too
Relevance = NDArray[np.float64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--documents", type=int, default=20)
    parser.add_argument("--out", type=Path, help="keep the rows as JSON")
    given = parser.parse_args()
    classifiers = {folder.name: loaded(folder) for folder in given.folders}
    texts = reviews(next(iter(classifiers.values())), given.data, given.documents)
    own = {name: [relevance(c, text) for text in texts] for name, c in classifiers.items()}
    put_rules_in()
    rows = []
    for folder in given.folders:
        classifier = loaded(folder)  # again: some classes of models are replaced
        theirs = [gradient_times_state(classifier, text) for text in texts]
        rows.append({"model": folder.name, "reviews": len(texts), **far(own[folder.name], theirs)})
        print(rows[-1])
    if given.out is not None:
        given.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def loaded(folder: Path) -> Any:
    from transformers import PreTrainedTokenizerFast

    kept = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    module = importlib.import_module(f"transformers.models.{kept['model_type']}")
    kind = getattr(module, kept["architectures"][0])
    model = kind.from_pretrained(folder, attn_implementation="eager").double().eval()
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder, model_input_names=MAKES)
    return slalom.HuggingFaceClassifier(model, tokenizer)


def relevance(classifier: Any, text: str) -> Relevance:
    document = classifier.split(text)
    found = classifier.internals().relevance(document, lambda logits: logits[:, 1] - logits[:, 0])
    return np.asarray(found)


def gradient_times_state(classifier: Any, text: str) -> Relevance:
    """Which is relevance where lxt's rules are in the model."""
    import torch

    ids = classifier.internals().ids(classifier.split(text))[None]
    output = classifier.model(input_ids=ids, output_hidden_states=True)
    state = output.hidden_states[0]
    (slope,) = torch.autograd.grad(output.logits[0, 1] - output.logits[0, 0], state)
    return np.asarray((slope * state)[0].sum(dim=-1).detach())


def put_rules_in() -> None:
    """lxt imports torchvision for other models: a module of that name stands in for it."""
    import torch

    families = ("bert", "gpt2", "llama", "qwen2", "qwen3", "gemma3")  # all that lxt imports
    modules = [importlib.import_module(f"transformers.models.{f}.modeling_{f}") for f in families]
    vision = types.ModuleType("torchvision.models")
    vision.vision_transformer = types.ModuleType("vision_transformer")  # type: ignore[attr-defined]
    vision.vision_transformer.nn = torch.nn
    sys.modules |= {"torchvision": types.ModuleType("torchvision"), vision.__name__: vision}
    put_in = importlib.import_module("lxt.efficient").monkey_patch
    for module in modules[:2]:
        put_in(module)


def far(own: list[Relevance], theirs: list[Relevance]) -> dict[str, float]:
    pairs = list(zip(own, theirs, strict=True))
    return {
        "relative distance": float(
            max(np.linalg.norm(a - b) / np.linalg.norm(b) for a, b in pairs)
        ),
        "correlation": float(min(np.corrcoef(a, b)[0, 1] for a, b in pairs)),
    }


if __name__ == "__main__":
    main()
