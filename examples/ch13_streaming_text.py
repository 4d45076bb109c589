"""Chapter 13: an answer of Chinese characters and emoji, token by token. No piece splits a character, nothing is
taken back, and the pieces joined are the decoded whole, wherever the answer ends.

Only the tokenizer of `MINISGL_MODEL` is used, or of a model that tools/models.py makes.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from minisgl.core import SamplingParams  # noqa: E402
from minisgl.message.tokenizer import DetokenizeMsg  # noqa: E402
from minisgl.tokenizer.detokenize import AnswerStream, StreamDecoder, decode  # noqa: E402
from minisgl.tokenizer.tokenize import Tokenizer  # noqa: E402
from minisgl.utils.hf import load_tokenizer  # noqa: E402

ANSWER = "页表记着位置🎉，KV 在池里👩‍💻。"


def model_folder() -> Path:
    if given := os.environ.get("MINISGL_MODEL"):
        return Path(given)
    from tools.models import cached

    return cached("qwen3")


def main() -> None:
    tokenizer = load_tokenizer(model_folder())
    chat = [{"role": "user", "content": "KV 在哪里？"}]
    print(f"聊天模板: {Tokenizer(tokenizer).lay_out(chat, {})!r}")

    ids = tokenizer.encode(ANSWER, add_special_tokens=False)
    decoder = StreamDecoder(tokenizer)
    pieces = [decoder.push(token) for token in ids] + [decoder.finish()]
    print(f"{len(ids)} 个 token，逐个解码: {[tokenizer.decode([token]) for token in ids[:8]]} ...")
    print(f"流式的片段: {[piece for piece in pieces if piece]}")
    print(f"拼起来等于整体解码: {''.join(pieces) == decode(tokenizer, ids) == ANSWER}")

    cut_short = []
    for end in range(len(ids) + 1):
        decoder = StreamDecoder(tokenizer)
        joined = "".join([*(decoder.push(token) for token in ids[:end]), decoder.finish()])
        assert joined == decode(tokenizer, ids[:end])
        if joined.endswith("\ufffd"):
            cut_short.append(end)
    print(f"在每个 token 处结束都成立: {len(ids) + 1} 处，其中 {len(cut_short)} 处停在字符中间")

    stream = AnswerStream(tokenizer, SamplingParams(stop=("池里",)))
    sent = []
    for token in ids:
        piece = stream.push(DetokenizeMsg(0, token, finished=False))
        if piece.reply is not None:
            sent.append(piece.reply.text)
        if piece.ended_here:
            break
    print(f"遇到停止串「池里」: {''.join(sent)!r}")


if __name__ == "__main__":
    main()
