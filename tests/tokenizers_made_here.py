"""Small tokenizers of the four families, and tiny random models to go with them: all offline."""

import json
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import torch
import transformers as hf
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.document import Document, FloatArray, Queries

TEXTS = [
    "A great film, and the acting is great too.",
    "The worst acting I have ever seen: don't waste your time!",
    "I loved the story, the music and every single minute of it.",
    "Not bad, but far too long; the ending was unbelievably dull.",
]
PIECES = (  # of a WordPiece trainer, whose ties fall otherwise in every process
    "th ##ng the ##ve ##ing ##nd ac and eve gr lo to wa ##at ##st ##ting ##eat ##or ##ut acting "
    "ever great too ba but do du end fa fi ha is it mu mi no of st se sing ti un wor yo ##ab ##si "
    "##el ##ev ##en ##ur ##le ##ll ##lm ##ly ##nut ##iev ##me ##bel ##ved long loved was wast "
    "##ory every bad don dull ending far"
).split()


@cache
def wordpiece() -> hf.PreTrainedTokenizerFast:
    """Like BERT: [CLS] … [SEP], ## inside words, token types."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    letters = sorted(set("".join(TEXTS).lower()) - {" "})
    inside = [f"##{letter}" for letter in letters if letter.isalpha()]
    vocabulary = [*special, *letters, *inside, *PIECES]
    ids = {piece: number for number, piece in enumerate(vocabulary)}
    made = Tokenizer(models.WordPiece(vocab=ids, unk_token="[UNK]"))
    made.normalizer = normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.decoder = decoders.WordPiece()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )


def _bytes(special: list[str]) -> Tokenizer:
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.train_from_iterator(
        TEXTS,
        trainers.BpeTrainer(
            vocab_size=320,
            special_tokens=special,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return made


@cache
def byte_level() -> hf.PreTrainedTokenizerFast:
    """Like GPT-2: no special tokens, no pad, Ġ before words."""
    made = _bytes(["<|endoftext|>"])
    made.post_processor = processors.ByteLevel(trim_offsets=False)
    return hf.PreTrainedTokenizerFast(tokenizer_object=made, eos_token="<|endoftext|>")


@cache
def byte_level_trimmed() -> hf.PreTrainedTokenizerFast:
    """Like RoBERTa: <s> … </s>, pad id 1, offsets without the space."""
    made = _bytes(["<s>", "<pad>", "</s>", "<mask>"])
    made.post_processor = processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=made,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        mask_token="<mask>",
    )


@cache
def unigram() -> hf.PreTrainedTokenizerFast:
    """Like XLM-R and T5: ▁ before words, </s> at the end, one <unk> for several characters."""
    special = ["<pad>", "</s>", "<unk>", "<mask>"]
    made = Tokenizer(models.Unigram())
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    made.train_from_iterator(
        TEXTS,
        trainers.UnigramTrainer(
            vocab_size=80, special_tokens=special, unk_token="<unk>", show_progress=False
        ),
    )
    pieces = json.loads(made.to_str())["model"]["vocab"]
    known = sorted(pieces[len(special) :])  # their numbers would differ in every process
    made.model = models.Unigram([tuple(p) for p in pieces[: len(special)] + known], unk_id=2)
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
        mask_token="<mask>",
    )


@cache
def byte_fallback() -> hf.PreTrainedTokenizerFast:
    """Like Llama: <s> in front, no pre-tokenizer, unknown characters as <0x..> bytes, no pad."""
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    made = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    made.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    made.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")  # no merges across words
    made.train_from_iterator(
        TEXTS, trainers.BpeTrainer(vocab_size=340, special_tokens=special, show_progress=False)
    )
    made.pre_tokenizer = None
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return hf.PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )


TOKENIZERS: dict[str, Callable[[], hf.PreTrainedTokenizerFast]] = {
    "wordpiece": wordpiece,
    "byte-level": byte_level,
    "byte-level-trimmed": byte_level_trimmed,
    "unigram": unigram,
    "byte-fallback": byte_fallback,
}

SMALL = {
    "vocab_size": 400,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 64,
}
SMALL_GPT2 = {"vocab_size": 400, "n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 64}
SMALL_T5 = {
    "vocab_size": 400,
    "d_model": 16,
    "d_kv": 8,
    "d_ff": 24,
    "num_layers": 2,
    "num_heads": 2,
}
SMALL_BART = {
    "vocab_size": 400,
    "d_model": 16,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 64,
}
ARCHITECTURES: dict[str, tuple[str, dict[str, Any], str]] = {  # class prefix, config, tokenizer
    "BERT": ("Bert", SMALL, "wordpiece"),
    "Electra": ("Electra", {**SMALL, "embedding_size": 16}, "wordpiece"),
    "DistilBERT": (
        "DistilBert",
        {"vocab_size": 400, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 24,
         "max_position_embeddings": 64},
        "wordpiece",
    ),
    "RoBERTa": ("Roberta", SMALL, "byte-level-trimmed"),
    "MPNet": ("MPNet", SMALL, "byte-level-trimmed"),
    "DeBERTa": (
        "DebertaV2",
        {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]},
        "unigram",
    ),
    "ModernBERT": ("ModernBert", {**SMALL, "pad_token_id": 0}, "wordpiece"),
    "GPT-2": ("GPT2", SMALL_GPT2, "byte-level"),
    "Llama": ("Llama", {**SMALL, "num_key_value_heads": 2}, "byte-fallback"),
    "BLOOM": (
        "Bloom", {"vocab_size": 400, "hidden_size": 16, "n_layer": 2, "n_head": 2}, "byte-level"
    ),
    "OPT": (
        "OPT",
        {**{k: v for k, v in SMALL.items() if k != "intermediate_size"}, "ffn_dim": 24,
         "word_embed_proj_dim": 16},
        "byte-level-trimmed",
    ),
    "T5": ("T5", {**SMALL_T5, "pad_token_id": 0, "eos_token_id": 1,
                  "decoder_start_token_id": 0}, "unigram"),
    "BART": ("Bart", {**SMALL_BART, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
                      "decoder_start_token_id": 2}, "byte-level-trimmed"),
    "XLNet": (
        "XLNet", {"vocab_size": 400, "d_model": 16, "n_layer": 2, "n_head": 2, "d_inner": 24},
        "unigram",
    ),
    "FNet": (
        "FNet", {k: v for k, v in SMALL.items() if k != "num_attention_heads"}, "wordpiece"
    ),
}  # fmt: skip


def tiny(architecture: str, **settings: Any) -> tuple[Any, hf.PreTrainedTokenizerFast]:
    """A random model in eval mode whose weights are large enough for padding to matter."""
    prefix, config, tokenizer = ARCHITECTURES[architecture]
    settings = {**config, **({} if "id2label" in settings else {"num_labels": 2}), **settings}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # DeBERTa's, when it is imported
        model = _random(f"{prefix}ForSequenceClassification", f"{prefix}Config", settings)
    return model, TOKENIZERS[tokenizer]()


LANGUAGE_MODELS: dict[str, tuple[str, str, dict[str, Any], str]] = {  # class, config class, …
    "GPT-2": ("GPT2LMHeadModel", "GPT2Config", SMALL_GPT2, "byte-level"),
    "Llama": (
        "LlamaForCausalLM", "LlamaConfig", {**SMALL, "num_key_value_heads": 2}, "byte-fallback"
    ),
    "BLOOM": ("BloomForCausalLM", "BloomConfig", ARCHITECTURES["BLOOM"][1], "byte-level"),
    "OPT": ("OPTForCausalLM", "OPTConfig", ARCHITECTURES["OPT"][1], "byte-level-trimmed"),
    "Mistral": (
        "MistralForCausalLM", "MistralConfig",
        {**SMALL, "num_key_value_heads": 2, "sliding_window": 8}, "byte-fallback",
    ),
    "Mamba": (
        "MambaForCausalLM", "MambaConfig",
        {"vocab_size": 400, "hidden_size": 16, "num_hidden_layers": 2, "state_size": 4},
        "byte-level",
    ),
}  # fmt: skip


def tiny_language_model(
    architecture: str, **settings: Any
) -> tuple[Any, hf.PreTrainedTokenizerFast]:
    """The same without a classification head: it only goes on with a text."""
    model, config, stated, tokenizer = LANGUAGE_MODELS[architecture]
    ends = {"bos_token_id": 0, "eos_token_id": 0}
    return _random(model, config, {**ends, **stated, **settings}), TOKENIZERS[tokenizer]()


def _random(model_class: str, config_class: str, settings: dict[str, Any]) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = getattr(hf, model_class)(getattr(hf, config_class)(**settings))
        for weight in model.parameters():
            if weight.ndim > 1:
                torch.nn.init.normal_(weight, std=0.25)
    return model.eval()


@cache
def made(architecture: str) -> HuggingFaceClassifier:
    return HuggingFaceClassifier(*tiny(architecture))


@cache
def roomy(architecture: str) -> HuggingFaceClassifier:
    """The same with a longer context."""
    room = "n_positions" if architecture == "GPT-2" else "max_position_embeddings"
    return HuggingFaceClassifier(*tiny(architecture, **{room: 600}))


class Counted(HuggingFaceClassifier):
    """A Hugging Face classifier that counts what it is asked."""

    def __init__(self, model: Any, tokenizer: Any) -> None:
        super().__init__(model, tokenizer)
        self.n_asked = 0

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        self.n_asked += sum(len(queries) for _, queries in asked)
        return super().logits(asked)
