"""A language model behind an address that says how likely it finds a given answer.

    echo               completions return the prompt's own tokens with their log-probabilities
                       (vLLM, llama-cpp-python)
    prompt_logprobs    the same as a list of its own (vLLM)

Chat completions have no such thing, so the chat template is applied here, where a tokenizer of the
model is given; without one the prompt goes as plain text.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any

import numpy as np

from slalom.classifiers.chat.classifier import BYTES_PER_TOKEN
from slalom.classifiers.chat.server import (
    Budget,
    ChatServer,
    Key,
    RefusedError,
    Session,
    client_library,
)
from slalom.classifiers.disk_cache import key_of
from slalom.document import FloatArray
from slalom.errors import ClassifierError, InputError

CERTAIN = -1e-9  # a log-probability is at most this: servers round
NEEDED = (
    "what is needed are completions that take echo or prompt_logprobs, as those of vLLM and "
    "llama-cpp-python do, or a model on this machine"
)
Tell = Callable[[int], None]
Span = tuple[int, int]
Tokens = tuple[tuple[Span, ...], tuple[float, ...]]  # of a continuation: where, log-probabilities


class CompletionServer:
    """`tokenizer` is the model's own, for its chat template; None: the prompt is plain text."""

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        tokenizer: Any = None,
        concurrency: int = 8,
        retries: int = 6,
        timeout: float = 120.0,
    ) -> None:
        client_library()
        if tokenizer is not None and not getattr(tokenizer, "chat_template", None):
            raise InputError(f"{type(tokenizer).__name__} has no chat template: leave it out")
        self.server = ChatServer(
            model, base_url, Key(api_key), budget=Budget(None, None), timeout=timeout
        )
        self.tokenizer, self.concurrency, self.retries = tokenizer, concurrency, retries

    def __repr__(self) -> str:
        return f"CompletionServer({self.server.model!r}, base_url={self.server.address!r})"

    @property
    def name(self) -> str:
        return self.server.model

    @property
    def fingerprint(self) -> str:
        template = str(getattr(self.tokenizer, "chat_template", None))
        return key_of(self.server.address, self.server.model, template)

    @property
    def has_template(self) -> bool:
        return self.tokenizer is not None

    def addressed(self, content: str) -> str:
        if self.tokenizer is None:
            return content
        message = [{"role": "user", "content": content}]
        return str(
            self.tokenizer.apply_chat_template(message, tokenize=False, add_generation_prompt=True)
        )

    def write(self, prompt: str, most: int) -> str:
        wanted = {"max_tokens": most, "temperature": 0}
        with self.server.session(self.retries) as session:
            (choice, *_) = session.continued(prompt, wanted)["choices"]
        return str(choice.get("text", "")).strip()

    def tokens(self, prompt: str, continuation: str) -> tuple[Span, ...]:
        with self.server.session(self.retries) as session:
            return self._asked(session, prompt, continuation)[0]

    def count(self, texts: Sequence[str]) -> list[int]:
        """About: a server does not show its tokens."""
        return [max(1, round(len(text.encode()) / BYTES_PER_TOKEN)) for text in texts]

    def log_odds(self, prompts: Sequence[str], continuation: str, *, tell: Tell) -> FloatArray:
        """(n_prompts, n_tokens) of each token of the continuation of each prompt."""
        found: list[Tokens] = [((), ())] * len(prompts)
        with (
            self.server.session(self.retries) as session,
            ThreadPoolExecutor(self.concurrency) as pool,
        ):
            asking = {
                pool.submit(self._asked, session, prompt, continuation): number
                for number, prompt in enumerate(prompts)
            }
            try:
                for done in as_completed(asking):
                    found[asking[done]] = done.result()
                    tell(1)
            except BaseException:
                session.stop.set()
                pool.shutdown(wait=True, cancel_futures=True)
                raise
        if len({spans for spans, _ in found}) > 1:
            raise ClassifierError(
                f"{self.name} cuts the answer into other tokens after other sources: "
                "end the prompt with a line break"
            )
        log_p = np.minimum(np.array([row for _, row in found], dtype=np.float64), CERTAIN)
        return np.asarray(log_p - np.log(-np.expm1(log_p)))

    def _asked(self, session: Session, prompt: str, continuation: str) -> Tokens:
        """The continuation's tokens after one prompt, by whatever the server has for it."""
        whole, begins = prompt + continuation, len(prompt)
        where = f"{self.name} at {self.server.address}"
        problem = f"{where} does not say how likely a given text is: {NEEDED}"
        for wanted, read in ((ECHO, _echoed), (PROMPT_LOGPROBS, _listed)):
            try:
                reply = session.continued(whole, {"max_tokens": 1, "temperature": 0, **wanted})
            except RefusedError as refused:
                problem = f"{refused}; completions with echo or prompt_logprobs are needed"
                continue
            tokens = read(reply["choices"][0], whole, begins)
            if tokens is not None:
                return tokens
        raise ClassifierError(problem)


ECHO = {"echo": True, "logprobs": 1}
PROMPT_LOGPROBS = {"extra_body": {"prompt_logprobs": 0}}


def _echoed(choice: dict[str, Any], whole: str, begins: int) -> Tokens | None:
    """From lists of tokens, log-probabilities and places; None: the prompt is not among them."""
    told = choice.get("logprobs")
    if not isinstance(told, dict) or not isinstance(told.get("text_offset"), list):
        return None
    starts, log_ps = told["text_offset"], told.get("token_logprobs") or []
    inside = [at for at, start in enumerate(starts) if begins <= start < len(whole)]
    if not inside or starts[0] != 0 or len(log_ps) != len(starts):
        return None
    ends = [*starts[1:], len(whole)]
    spans = [(starts[at], min(len(whole), ends[at])) for at in inside]
    return _checked(spans, [log_ps[at] for at in inside], whole, begins)


def _listed(choice: dict[str, Any], whole: str, begins: int) -> Tokens | None:
    """From one mapping per token of the prompt, of which the last are the answer's."""
    told = choice.get("prompt_logprobs")
    if not isinstance(told, list):
        return None
    spans: list[Span] = []
    log_ps: list[float] = []
    end = len(whole)
    for one in reversed(told):
        if not one:
            break
        token = min(one.values(), key=lambda entry: entry["logprob"])  # its own; a likelier beside
        start = end - len(token["decoded_token"])
        if start < begins:
            break
        spans.insert(0, (start, end))
        log_ps.insert(0, token["logprob"])
        end = start
    return _checked(spans, log_ps, whole, begins)


def _checked(
    spans: Sequence[Span], log_ps: Sequence[float | None], whole: str, begins: int
) -> Tokens | None:
    """Counted from where the continuation begins; a token of half a character is told without
    text, and gets that of the next, which ends the character."""
    if not spans or any(not isinstance(one, int | float) for one in log_ps):
        return None
    if whole[begins : spans[0][0]].strip():
        raise ClassifierError(
            "the server joins the answer with the end of the prompt in one token: end the prompt "
            "with a line break"
        )
    own: list[Span] = []
    for start, end in reversed(spans):
        end = own[0][1] if start == end and own else end - begins
        own.insert(0, (start - begins, end))
    return tuple(own), tuple(float(one) for one in log_ps if one is not None)
