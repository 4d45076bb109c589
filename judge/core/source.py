"""The text of a submission, from the bytes that arrived. Whatever an editor does to a file by itself (a BOM, CRLF) is
undone here; what no program can be made of is refused with a reason."""

from __future__ import annotations

from judge.core.verdict import Message

DEFAULT_MAX_BYTES = 64 * 1024


class SourceError(ValueError):
    """The submission is no program text. `message` has the code and parameters for `wording.say`."""

    def __init__(self, code: str, **params: object) -> None:
        self.message = Message(code, params)
        super().__init__(f"{code}: {params}")


def decode_source(raw: bytes, max_bytes: int = DEFAULT_MAX_BYTES) -> str:
    """Decode a submission: UTF-8, with or without BOM, any line ending; returns text with LF line ends.

    Raises SourceError with code `source_too_large` (params size, limit: bytes), `source_not_utf8` (params line,
    byte: the offending value), `source_nul` (params line) or `source_empty`.
    """
    if len(raw) > max_bytes:
        raise SourceError("source_too_large", size=len(raw), limit=max_bytes)
    body = raw.removeprefix(b"\xef\xbb\xbf")
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line = body[: error.start].count(b"\n") + 1
        raise SourceError("source_not_utf8", line=line, byte=f"0x{body[error.start]:02x}") from None
    if "\0" in text:
        raise SourceError("source_nul", line=text[: text.index("\0")].count("\n") + 1)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        raise SourceError("source_empty")
    return text
