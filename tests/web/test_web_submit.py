"""Sending a submission: what arrives is what is judged, and whatever arrives gets a clear answer."""

from __future__ import annotations

import io

import pytest
from werkzeug.datastructures import MultiDict

from judge.store import reading

GOOD_HEAD = "import torch\n\n\n"


def kept(app, number):
    with app.extensions["course"].store.read() as session:
        return reading.find(session, "local", number).source


def multipart(parts: dict[str, bytes], boundary: str = "----b") -> tuple[bytes, str]:
    body = b""
    for name, value in parts.items():
        body += (
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
            + value
            + b"\r\n"
        )
    return body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


RAW = [
    b"def f():\n    pass\n",
    b"\xef\xbb\xbfdef f():\r\n\tpass\r\n",
    b"x = '\xff\xfe'\n",
    b"x = 1\x00\n",
    "s = '中文 🎉'\n".encode(),
    b"",
    b"a+b=%41&c\n--\r\n----b\n",
]


@pytest.mark.parametrize("raw", RAW)
def test_multipart_arrives_byte_for_byte(app, browser, raw):
    body, kind = multipart({"csrf_token": browser.csrf().encode(), "source": raw})
    answer = browser.post("/problems/200/submissions", body, content_type=kind)
    assert answer.status_code == 303
    assert kept(app, int(answer.location.rpartition("/")[2])) == raw


@pytest.mark.parametrize("raw", RAW)
def test_urlencoded_arrives_byte_for_byte(app, browser, raw):
    from urllib.parse import urlencode

    body = urlencode({"csrf_token": browser.csrf(), "source": raw})
    answer = browser.post("/problems/200/submissions", body, content_type="application/x-www-form-urlencoded")
    assert answer.status_code == 303
    assert kept(app, int(answer.location.rpartition("/")[2])) == raw


def test_a_file_counts_before_the_text(app, browser):
    fields = {"source": "text = 1", "file": (io.BytesIO(b"file = 1\n\xff"), "mine.py")}
    number = browser.submit(**{"source": fields["source"], "file": fields["file"]})
    assert kept(app, number) == b"file = 1\n\xff"


def test_no_file_chosen_leaves_the_text(app, browser):
    number = browser.submit("text = 1", file=(io.BytesIO(b""), ""))
    assert kept(app, number) == b"text = 1"


def test_scripts_get_json(browser):
    answer = browser.post(
        "/problems/200/submissions", {"source": "x = 1"}, headers={"Accept": "application/json"}
    )
    assert answer.status_code == 201
    assert answer.json == {"id": 1, "fragment": "/submissions/1/fragment"}


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_missing_field_is_said(browser, lang):
    answer = browser.post("/problems/200/submissions", {}, lang)
    assert answer.status_code == 400
    assert ("缺少字段 source" if lang == "zh" else "source” is missing") in answer.text
    data = browser.post("/problems/200/submissions", {}, lang, headers={"Accept": "application/json"}).json
    assert "source" in data["error"]


def test_an_unknown_problem_is_said(browser):
    assert browser.post("/problems/999/submissions", {"source": "x"}).status_code == 404


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_megabyte_of_text_is_refused_with_its_size(browser, lang):
    answer = browser.post("/problems/200/submissions", {"source": "# 中文\n" * 110_000}, lang)
    assert answer.status_code == 413
    assert ("上限是 65536 字节" if lang == "zh" else "limit is 65536 bytes") in answer.text
    assert browser.get("/submissions").text.count("/submissions/") == 0


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_a_body_over_the_cap_is_a_413_page(browser, lang):
    answer = browser.post("/problems/200/submissions", {"source": "x" * (4096 * 1024)}, lang)
    assert answer.status_code == 413
    assert ("太大了" if lang == "zh" else "Too large") in answer.text


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"{}", "application/json"),
        (b"source=x", "text/plain"),
        (b"no boundary", "multipart/form-data"),
        (b"garbage", "multipart/form-data; boundary=b"),
        (b"--b\r\nContent-Disposition: form-data\r\n\r\nx\r\n--b--", "multipart/form-data; boundary=b"),
        (b"&" * 5000, "application/x-www-form-urlencoded"),
        (b"", "application/x-www-form-urlencoded"),
    ],
)
def test_a_body_that_is_no_form_is_a_400_page(browser, body, kind):
    headers = {"X-CSRFToken": browser.csrf()}
    answer = browser.post("/problems/200/submissions", body, content_type=kind, headers=headers)
    assert answer.status_code == 400
    assert "<h1" in answer.text


BAD_PROGRAMS = {
    "empty": (b"", "提交是空的", "submission is empty"),
    "blank": (b" \n\t\n", "提交是空的", "submission is empty"),
    "syntax": (
        b"def flashinfer_metadata(reqs, page_table, page_size):\n    return (1,\n",
        "第 2 行有语法错误",
        "Syntax error in line 2",
    ),
    "missing function": (b"x = 1\n", "没有找到函数 flashinfer_metadata", "no function flashinfer_metadata"),
    "wrong signature": (
        b"def flashinfer_metadata(reqs):\n    pass\n",
        "不能用 3 个位置参数调用",
        "cannot be called with 3",
    ),
    "NUL": (b"x = 1\ny = '\x00'\n", "第 2 行有 NUL", "Line 2 contains a NUL"),
    "not UTF-8": (b"x = 1\n# \xff\n", "第 2 行有不是 UTF-8", "Line 2 has a byte that is not UTF-8"),
    "tabs": (b"def f():\n\tif 1:\n        pass\n", "第 3 行有语法错误", "Syntax error in line 3"),
}


@pytest.mark.parametrize("name", BAD_PROGRAMS)
def test_what_is_no_program_gets_a_verdict_that_says_why(browser, judge_all, name):
    raw, chinese, english = BAD_PROGRAMS[name]
    body, kind = multipart({"csrf_token": browser.csrf().encode(), "source": raw})
    browser.post("/problems/200/submissions", body, content_type=kind)
    [verdict] = judge_all()
    assert verdict["status"] == "compile_error"
    assert chinese in browser.get("/submissions/1", "zh").text
    assert english in browser.get("/submissions/1", "en").text
    assert browser.get("/problems/200?from=1").status_code == 200


def test_a_syntax_error_shows_line_and_caret(browser, judge_all):
    browser.submit("x = (1 +\ny = 2)\n")
    judge_all()
    page = browser.get("/submissions/1").text
    message = page.split('<pre class="message">')[1].split("</pre>")[0]
    line, caret = message.split("\n")[1:3]
    assert caret.strip() == "^"
    assert caret.index("^") < len(line)


@pytest.mark.parametrize("head", [b"\xef\xbb\xbf", b""])
@pytest.mark.parametrize("end", [b"\r\n", b"\r", b"\n"])
def test_what_editors_do_to_a_file_does_no_harm(app, browser, judge_all, head, end):
    solution = app.extensions["course"].packages[200].solution.encode()
    body, kind = multipart(
        {"csrf_token": browser.csrf().encode(), "source": head + solution.replace(b"\n", end)}
    )
    browser.post("/problems/200/submissions", body, content_type=kind)
    [verdict] = judge_all()
    assert verdict["status"] == "accepted"


def test_who_is_alone_may_submit_as_often_as_they_like(browser):
    """The limit keeps the judge free for others."""
    data = MultiDict({"csrf_token": browser.csrf(), "source": "x"})
    script = {"Accept": "application/json"}
    codes = []
    for _ in range(65):
        answer = browser.post("/problems/40/submissions", data, headers=script)
        codes.append(answer.status_code)
        browser.post(f"/submissions/{answer.json['id']}/cancel", data, headers=script)
    assert codes == [201] * 65
