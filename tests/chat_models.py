"""A tiny Llama that answers 1 to good words and 0 to bad ones, for real servers to serve."""

from pathlib import Path

GOOD = ("good", "great", "wonderful", "fine", "lovely")
BAD = ("bad", "terrible", "awful", "dull", "clumsy")
PLAIN = ("a", "the", "film", "with", "and", "music", "one", "but", "joke", "start", "slow")
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n"
    "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)
STEPS = 200


def make_chat_model(folder: Path, prompt: str) -> None:
    """Train for a second and save in the form every server reads."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = _tokenizer(prompt)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=512,
        bos_token_id=0,
        eos_token_id=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LlamaForCausalLM(config)
        _train(model, tokenizer, prompt)
    model.generation_config.do_sample = True  # `transformers serve` would be greedy otherwise
    model.generation_config.top_k = 0
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def prompt_ids(tokenizer, prompt: str, text: str) -> list[int]:
    """What a server makes of one user message."""
    messages = [{"role": "user", "content": prompt.replace("{text}", text)}]
    shown = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return tokenizer(shown, add_special_tokens=False)["input_ids"]


def _tokenizer(prompt: str):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        special_tokens=["<s>", "</s>"],
        show_progress=False,
    )
    words = " ".join((*GOOD, *BAD, *PLAIN))
    tokenizer.train_from_iterator([words, prompt, "user assistant"] * 3, trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        chat_template=TEMPLATE,
    )


def _train(model, tokenizer, prompt: str) -> None:
    """Answer by the mean of the words' signs; the other tokens keep a little of the mass."""
    import numpy as np
    import torch

    rng = np.random.default_rng(0)
    sign = {**dict.fromkeys(GOOD, 1.0), **dict.fromkeys(BAD, -1.0)}
    answers = tokenizer.convert_tokens_to_ids(["0", "1"])
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.007)
    for _ in range(STEPS):
        texts = [list(rng.choice((*GOOD, *BAD, *PLAIN), size=6)) for _ in range(16)]
        rows = [prompt_ids(tokenizer, prompt, " ".join(words)) for words in texts]
        width = max(map(len, rows))
        ids = torch.tensor([[*row, *([1] * (width - len(row)))] for row in rows])
        last = torch.tensor([len(row) - 1 for row in rows])
        scores = torch.tensor([sum(sign.get(word, 0.0) for word in words) for words in texts])
        logits = model(ids).logits[torch.arange(len(rows)), last]
        positive = torch.sigmoid(scores.float())
        wanted = torch.full_like(logits, 0.1 / logits.shape[1])
        wanted[:, answers] += 0.9 * torch.stack([1 - positive, positive], dim=1)
        loss = -(wanted * logits.log_softmax(-1)).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
