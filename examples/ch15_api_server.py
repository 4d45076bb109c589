"""Chapter 15: the engine as a service. A streamed answer, a plain one with its usage, a client that hangs up, and
all pages free again.

The model is made here, with weights written by hand: it knows one sentence, which has no two equal tokens, and
every token's successor can be read off a matrix. Asked anything in a chat it recites that sentence, in Chinese and
with an emoji, so several tokens make one character. A prompt that ends in another token is continued with that
token for ever. Only the tokenizer is taken from `MINISGL_MODEL`, or from a model that tools/models.py makes.
"""

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402

from minisgl.utils.hf import load_tokenizer  # noqa: E402

SENTENCE = "中文好🎉"
START_S = 120


def make_reciting_model(folder: Path, tokenizer_folder: Path, sentence: str = SENTENCE) -> None:
    """A model in Hugging Face's layout whose answer in a chat is `sentence`.

    Attention and MLP add nothing, so a token's logits depend on that token alone: row w of lm_head is the sum of
    the embeddings of all tokens that w follows. ValueError if the sentence has a token twice.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "chat_template.jinja"):
        if (tokenizer_folder / name).is_file():
            shutil.copyfile(tokenizer_folder / name, folder / name)
    tokenizer = load_tokenizer(folder)
    chat = tokenizer.apply_chat_template(
        [{"role": "user", "content": "?"}], tokenize=False, add_generation_prompt=True
    )
    asked = tokenizer.encode(chat, add_special_tokens=False)[-1]
    chain = [asked, *tokenizer.encode(sentence, add_special_tokens=False), tokenizer.eos_token_id]
    if len(set(chain)) < len(chain):
        raise ValueError(f"{sentence!r} has a token twice: {chain}")
    vocab_size, hidden = len(tokenizer), 128
    follows = torch.arange(vocab_size)
    follows[chain[:-1]] = torch.tensor(chain[1:])
    embedding = torch.nn.functional.normalize(
        torch.randn(vocab_size, hidden, generator=torch.Generator().manual_seed(0))
    )
    lm_head = torch.zeros(vocab_size, hidden).index_add_(0, follows, embedding)
    layer, square, ones = "model.layers.0", torch.zeros(hidden, hidden), torch.ones(hidden)
    save_file(
        {
            "model.embed_tokens.weight": embedding,
            "lm_head.weight": lm_head,
            "model.norm.weight": ones.clone(),
            f"{layer}.input_layernorm.weight": ones.clone(),
            f"{layer}.post_attention_layernorm.weight": ones.clone(),
            **{f"{layer}.self_attn.{name}_proj.weight": square.clone() for name in "qkvo"},
            **{f"{layer}.mlp.{name}_proj.weight": square.clone() for name in ("gate", "up", "down")},
        },
        folder / "model.safetensors",
    )
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": vocab_size,
        "hidden_size": hidden,
        "intermediate_size": hidden,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "num_key_value_heads": 2,
        "head_dim": hidden // 2,
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-6,
        "rope_parameters": {"rope_type": "default", "rope_theta": 1e4},
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "eos_token_id": tokenizer.eos_token_id,
        "dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")


def tokenizer_folder() -> Path:
    if given := os.environ.get("MINISGL_MODEL"):
        return Path(given)
    from tools.models import cached

    return cached("qwen3")


@contextlib.contextmanager
def serving(model: Path, *flags: str) -> Iterator[int]:
    """A server in processes of its own; gives the port."""
    command = [sys.executable, "-m", "minisgl", "--model", str(model), "--served-model-name", "reciter",
               "--port", "0", *flags]  # fmt: skip
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    server = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, encoding="utf-8", env={**os.environ, "PYTHONPATH": path}
    )
    try:
        assert server.stdout is not None
        line = server.stdout.readline()  # the server ends by itself, and so this line, if it cannot start
        if not line:
            sys.exit(f"the server did not start: exit code {server.wait(START_S)}")
        yield int(line.rpartition(":")[2])
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(START_S)


def request(port: int, path: str, body: dict[str, object] | None = None) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=START_S)
    if body is None:
        connection.request("GET", path)
    else:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    return connection.getresponse()


def pages(port: int) -> tuple[int, int]:
    status = json.load(request(port, "/health"))
    return status["available_pages"], status["num_pages"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_reciting_model(Path(folder) / "model", tokenizer_folder())
        with serving(Path(folder) / "model", "--num-pages", "2048") as port:
            talk(port)


def talk(port: int) -> None:
    chat = {"messages": [{"role": "user", "content": "你好"}], "temperature": 0}
    print("流式（SSE），每行一个事件：")
    for line in request(port, "/v1/chat/completions", {**chat, "stream": True}):
        if data := line.decode().strip().removeprefix("data: "):
            choices = [] if data == "[DONE]" else json.loads(data)["choices"]
            shown = [(choice["delta"], choice["finish_reason"]) for choice in choices]
            print(f"  {shown[0] if shown else data}")

    answer = json.load(request(port, "/v1/chat/completions", chat))
    print("非流式:", answer["choices"][0]["message"]["content"], answer["choices"][0]["finish_reason"])
    print("usage:", {name: answer["usage"][name] for name in ("prompt_tokens", "completion_tokens")})

    refused = request(port, "/v1/chat/completions", {**chat, "top_p": 0})
    print(f"改不了就拒绝: {refused.status} {json.load(refused)['error']['message']}")

    stream = request(port, "/generate", {"prompt": "a", "max_tokens": 2000})
    for _ in range(3):
        stream.readline()
    available, total = pages(port)
    print(f"生成到一半，有页被占着: {available < total}")
    stream.close()  # the client hangs up
    deadline = time.monotonic() + 30
    while pages(port)[0] < total and time.monotonic() < deadline:
        time.sleep(0.01)
    available, total = pages(port)
    print(f"客户端断开后: {total} 页里空着 {available} 页")


if __name__ == "__main__":
    main()
