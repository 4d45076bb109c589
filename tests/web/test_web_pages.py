"""The pages, in both languages, and what they say when something does not exist or breaks."""

from __future__ import annotations

import pytest

CHINESE = {"Submit": "提交", "My submissions": "我的提交"}


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize("path", ["/", "/problems", "/problems/200", "/chapters/17", "/submissions"])
def test_every_page_in_both_languages(browser, path, lang):
    answer = browser.get(path, lang)
    assert answer.status_code == 200
    assert ("我的提交" if lang == "zh" else "My submissions") in answer.text
    assert f'<html lang="{"zh-CN" if lang == "zh" else "en"}"' in answer.text


@pytest.mark.parametrize(
    ("accept", "lang"),
    [
        ("zh-CN,zh;q=0.9", "zh-CN"),
        ("zh-TW", "zh-CN"),
        ("en-GB,en;q=0.8", "en"),
        ("fr", "zh-CN"),
        ("", "zh-CN"),
        ("fr,en;q=0.5", "en"),
    ],
)
def test_the_language_follows_the_browser(browser, accept, lang):
    assert f'<html lang="{lang}"' in browser.get("/", accept).text


def test_the_chosen_language_is_kept(browser):
    answer = browser.post("/language", {"lang": "zh", "next": "/problems/200?from=1"})
    assert (answer.status_code, answer.location) == (303, "/problems/200?from=1")
    assert '<html lang="zh-CN"' in browser.get("/", "en").text


@pytest.mark.parametrize(
    "back", ["//evil.example/", "https://evil.example", "/\\evil.example", "javascript:alert(1)", ""]
)
def test_the_way_back_stays_on_the_site(browser, back):
    assert browser.post("/language", {"lang": "en", "next": back}).location == "/"


def test_an_unknown_language_is_refused(browser):
    assert browser.post("/language", {"lang": "xx"}).status_code == 400


@pytest.mark.parametrize("lang", ["zh", "en"])
@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/problems/999",
        "/problems/99999999999999999999999",
        "/problems/x",
        "/chapters/99",
        "/submissions/1",
        "/submissions/99999999999999999999999999",
        "/submissions/1/fragment",
        "/submissions/1/state",
        "/submissions/1/events",
        "/problems/200?from=1",
        "/problems/200?from=x",
        "/problems/200?from=-1",
    ],
)
def test_what_does_not_exist_is_a_404_page(browser, path, lang):
    answer = browser.get(path, lang)
    assert answer.status_code == 404
    assert ("没有这个页面" if lang == "zh" else "There is no such page") in answer.text


def test_a_wrong_method_is_said(browser):
    assert browser.post("/problems/200", {}).status_code == 405


def test_a_fault_of_ours_is_a_500_page_without_details(app, browser):
    def broken() -> str:
        raise RuntimeError("secret detail")

    app.view_functions["problems.index"] = broken
    for lang, words in (("zh", "我们这边出错了"), ("en", "on our side")):
        answer = browser.get("/problems", lang)
        assert answer.status_code == 500
        assert words in answer.text
        assert "secret detail" not in answer.text


def test_anothers_submission_does_not_exist_for_me(app, browser):
    services = app.extensions["course"]
    number = services.queue.submit(user="somebody", problem=200, version="0" * 16, source=b"theirs = 1")
    for path in ("", "/fragment", "/state", "/events"):
        assert browser.get(f"/submissions/{number}{path}").status_code == 404
    assert browser.get(f"/problems/200?from={number}").status_code == 404
    assert "theirs" not in browser.get("/submissions").text


def test_the_problem_page_has_what_a_solver_needs(app, browser):
    page = browser.get("/problems/200").text
    package = app.extensions["course"].packages[200]
    for case in package.public:
        assert f"<code>{case.name}</code>" in page
    assert 'name="source"' in page
    assert "def flashinfer_metadata" in page
    assert "kv_last_page_len" in page
    assert "<noscript>" not in page.split('<form id="submit"')[1].split("</form>")[0]


@pytest.mark.parametrize(
    ("lang", "name"), [("zh", "原理 F：FlashInfer 的内部"), ("en", "Principles F: FlashInfer inside")]
)
def test_a_problem_of_the_track_says_so_and_stands_in_no_chapter(browser, lang, name):
    assert name in browser.get("/problems/302", lang).text
    assert name not in browser.get("/problems/200", lang).text
    assert 'href="/problems/302"' not in browser.get("/chapters/17", lang).text
    for path in ("/", "/problems"):
        page = browser.get(path, lang).text
        assert page.index(name) < page.index('href="/problems/302"')


def test_static_files_are_compressed_and_kept(browser):
    page = browser.get("/").text
    address = page.split('rel="stylesheet" href="')[1].split('"')[0]
    answer = browser.get(address, headers={"Accept-Encoding": "gzip"})
    assert answer.status_code == 200
    assert answer.headers["Content-Encoding"] == "gzip"
    assert "immutable" in answer.headers["Cache-Control"]
    assert answer.mimetype == "text/css"
    plain = browser.get(address)
    assert "Content-Encoding" not in plain.headers
    assert len(plain.data) > len(answer.data)


def test_the_first_problem_page_is_light(browser):
    """Page, style and every script of the problem page, compressed: under 250 kB."""
    import gzip
    import json

    from web.assets import BUILD

    page = len(gzip.compress(browser.get("/problems/200").data))
    manifest = json.loads((BUILD / "manifest.json").read_text())
    # What this build made; files of earlier ones lie beside it for pages that are still open.
    files = [BUILD / name for name in manifest["built"] if name.endswith((".js", ".css", ".svg"))]
    assert {manifest["files"][name] for name in ("editor.js", "problem.js")} <= {p.name for p in files}
    assert page + sum(len(gzip.compress(p.read_bytes())) for p in files) < 250_000
