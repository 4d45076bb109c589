"""The text of a submission, whatever an editor or an upload made of it."""

import pytest

from judge.core.source import SourceError, decode_source
from judge.core.wording import say

GOOD = "def f():\n\treturn 1\n"


@pytest.mark.parametrize(
    "raw",
    [
        GOOD.encode(),
        b"\xef\xbb\xbf" + GOOD.encode(),
        GOOD.replace("\n", "\r\n").encode(),
        GOOD.replace("\n", "\r").encode(),
    ],
    ids=["plain", "bom", "crlf", "cr"],
)
def test_what_an_editor_adds_is_taken_away(raw):
    assert decode_source(raw) == GOOD


@pytest.mark.parametrize(
    ("raw", "code", "params"),
    [
        (b"", "source_empty", {}),
        (b" \n\t\r\n", "source_empty", {}),
        (b"\xef\xbb\xbf", "source_empty", {}),
        (b"x = 1\ny = '\0'\n", "source_nul", {"line": 2}),
        (b"x = 1\n\ny = '\xff'\n", "source_not_utf8", {"line": 3, "byte": "0xff"}),
        ("x = '中'".encode("gbk"), "source_not_utf8", {"line": 1, "byte": "0xd6"}),
        (b"#" * 1_000_000, "source_too_large", {"size": 1_000_000, "limit": 65536}),
    ],
)
def test_what_is_no_program_is_refused_in_both_languages(raw, code, params):
    with pytest.raises(SourceError) as caught:
        decode_source(raw)
    assert caught.value.message.code == code
    assert caught.value.message.params == params
    for lang in ("zh", "en"):
        said = say(caught.value.message, lang)
        assert "{" not in said
        for value in params.values():
            assert str(value) in said
