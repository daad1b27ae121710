"""A real HTTP server around a real model that speaks vLLM's completions."""

import json
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import torch


@contextmanager
def completions(model, tokenizer, offers):
    """Gives its base_url; `offers` holds "echo", "prompt_logprobs", both or nothing."""
    lock = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            with lock:
                choice = answered(model, tokenizer, body, offers)
            raw = json.dumps({"choices": [choice], "usage": {"total_tokens": 9}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(raw)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def answered(model, tokenizer, body, offers):
    prompt = body["prompt"]
    encoded = tokenizer(prompt, add_special_tokens=False, return_offsets_mapping=True)
    ids, offsets = encoded["input_ids"], encoded["offset_mapping"]
    said, row = [], list(ids)
    with torch.no_grad():
        for _ in range(body["max_tokens"]):
            row.append(int(model(torch.tensor([row])).logits[0, -1].argmax()))
            if row[-1] == tokenizer.eos_token_id:
                break
            said.append(row[-1])
        log_p = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    text = tokenizer.decode(said)
    own = [None, *(float(log_p[at, ids[at + 1]]) for at in range(len(ids) - 1))]
    choice = {"index": 0, "text": text}
    if body.get("echo") and "echo" in offers:
        choice["text"] = prompt + text
        choice["logprobs"] = {
            "tokens": [*(prompt[a:b] for a, b in offsets), text],
            "token_logprobs": [*own, -0.1],
            "text_offset": [*(a for a, _ in offsets), len(prompt)],
        }
    if "prompt_logprobs" in body and "prompt_logprobs" in offers:
        choice["prompt_logprobs"] = [
            None,
            *(
                {str(ids[at]): {"logprob": own[at], "decoded_token": prompt[slice(*offsets[at])]}}
                for at in range(1, len(ids))
            ),
        ]
    return choice
