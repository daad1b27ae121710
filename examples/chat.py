"""A chat model behind an OpenAI-compatible address: a hosted one, or one on your own machine.

    OPENAI_BASE_URL=http://127.0.0.1:8000/v1 CHAT_MODEL=my-model python examples/chat.py

Without OPENAI_BASE_URL it is OpenAI's; the key comes from OPENAI_API_KEY and is kept nowhere.
"""

import os

import slalom

classifier = slalom.ChatClassifier(
    model=os.environ.get("CHAT_MODEL", "gpt-4o-mini"),
    labels={"neg": "0", "pos": "1"},
    prompt="Does the writer like the film? Answer 1 for yes or 0 for no, nothing else: <{text}>",
    cache="chat-replies.db",  # a second run, or one after an interruption, pays nothing twice
    max_requests=200,
)
text = "A slow start and one awful song, but a wonderful film with great music."
explanation = slalom.explain(classifier, text, target="pos", n_queries=80)

for unit, share in zip(explanation.units, explanation.scores["shapley"], strict=True):
    print(f"{share:+.2f}  {unit}")
print(f"R² {explanation.quality.r2:.2f}", *explanation.quality.notes, sep="\n")
