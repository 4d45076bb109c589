"""What the page gives the editor: names to complete, and ruff in a worker under a policy of its own."""

from __future__ import annotations

import html
import json
import re

import pytest

from web.assets import load_manifest


def names(browser, problem, lang="en"):
    page = browser.get(f"/problems/{problem}", lang).text
    found = re.search(r"<script type=\"application/json\" data-names>(.*?)</script>", page, re.S)
    return {entry["label"]: entry["kind"] for entry in json.loads(html.unescape(found[1]))}


@pytest.mark.parametrize("lang", ["zh", "en"])
def test_the_names_of_the_signature_and_the_statement_are_given(browser, lang):
    found = names(browser, 200, lang)
    assert found["flashinfer_metadata"] == "function"
    assert found["page_table"] == "variable"
    assert found["kv_last_page_len"] == "property"
    assert {"extend_len", "seq_len", "int32", "torch"} <= found.keys()
    assert names(browser, 141, lang)["device.launch"] == "property"


def test_names_are_no_prose_no_keywords_and_nothing_of_the_reference(app, browser):
    packages = app.extensions["course"].packages
    for problem in packages:
        found = names(browser, problem)
        assert not {"the", "Returns", "for", "def", "return", "int"} & found.keys(), problem
    private = set(re.findall(r"\b\w+\b", packages[200].solution)) - set(
        re.findall(r"\w+", packages[200].starter + packages[200].text("statement.en.md"))
    )
    assert "page_counts" in private
    assert not private & names(browser, 200).keys()


def test_only_the_workers_own_script_may_compile_wasm(browser):
    manifest = load_manifest()
    for path, allowed in {
        f"/static/build/{manifest['ruff-worker.js']}": True,
        f"/static/build/{manifest['problem.js']}": False,
        "/problems/200": False,
        "/": False,
    }.items():
        with browser.get(path) as answer:
            policy = answer.headers["Content-Security-Policy"]
        assert ("wasm-unsafe-eval" in policy) is allowed, path
        assert "worker-src 'self'" in policy
        assert "'unsafe-eval'" not in policy


def test_ruff_is_served_compressed_under_its_own_type(browser):
    address = f"/static/build/{load_manifest()['ruff.wasm']}"
    answer = browser.get(address, headers={"Accept-Encoding": "gzip"})
    assert answer.mimetype == "application/wasm"
    assert answer.headers["Content-Encoding"] == "gzip"
    assert len(answer.data) < 4_500_000
