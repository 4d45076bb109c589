"""The OpenAPI document, and the page that says the same to people."""

from __future__ import annotations

import json
import re

import jsonschema
import pytest

from judge.store.queue import system_error
from tests.web.accounts.conftest import SITE

CJK = re.compile(r"[\u4e00-\u9fff]")


def document(visitor, lang="en"):
    return visitor.get("/api/v1/openapi.json", lang).json


def texts(node):
    """Summaries and descriptions of what is ours: the verdict's schema is the judge's, in English."""
    for key, value in (
        node.items() if isinstance(node, dict) else enumerate(node if isinstance(node, list) else [])
    ):
        if key in ("Verdict", "Bilingual", "BilingualTags", "Limits"):
            continue
        if key == "summary" or (key == "description" and isinstance(value, str)):
            yield value
        yield from texts(value)


def test_every_operation_stands_on_the_page(visitor):
    paths = document(visitor)["paths"]
    page = visitor.get("/api/v1")
    assert page.status_code == 200
    for path, methods in paths.items():
        for method, operation in methods.items():
            assert f"{method.upper()} {path}" in page.text
            assert operation["summary"] in page.text
            assert operation["security"] == [{"token": []}]
    assert "<script>" not in page.text
    assert not re.search(r"(src|href)=\"(?:https?:)?//", page.text)


def test_fields_and_summaries_are_told_in_chinese_too(visitor):
    made = document(visitor, "zh")
    for model in ("Me", "ProblemDetails", "NewSubmission", "SubmissionDetails", "Refusal"):
        for name, entry in made["components"]["schemas"][model]["properties"].items():
            assert CJK.search(entry["description"]), (model, name)
    for methods in made["paths"].values():
        for operation in methods.values():
            assert CJK.search(operation["summary"])
    assert all("{" not in text for text in texts(document(visitor)))


def test_references_lead_somewhere(visitor):
    made = document(visitor)
    for reference in set(re.findall(r'"\$ref": "([^"]+)"', json.dumps(made))):
        node = made
        for part in reference.removeprefix("#/").split("/"):
            node = node[part]
        assert node


@pytest.mark.parametrize("code", ["worker_lost", "internal"])
def test_a_verdict_of_the_judges_own_failure_fits_the_schema(visitor, code):
    made = document(visitor)
    schema = {"$ref": "#/components/schemas/Verdict", "components": made["components"]}
    jsonschema.validate(system_error(200, "0" * 16, code), schema)


def test_my_account_leads_to_the_tokens(signed_in):
    anna = signed_in("anna")
    assert "/account/tokens" in anna.get("/account").text
    assert "/api/v1" in anna.get("/account/tokens").text
    assert SITE in anna.get("/api/v1").text


def test_local_mode_takes_the_start_token_and_has_no_page_of_tokens(tmp_path):
    from judge.store import Store
    from web.app import create_app
    from web.settings import Settings

    settings = Settings(data_dir=tmp_path, token="start")
    store = Store(settings.url)
    store.migrate()
    app = create_app(settings)
    base = "http://127.0.0.1:8000"
    client = app.test_client()
    assert client.get("/api/v1/me", base_url=base).status_code == 401
    assert (
        client.get("/api/v1/me", base_url=base, headers={"Authorization": "Bearer wrong"}).status_code == 401
    )
    answer = client.get("/api/v1/me", base_url=base, headers={"Authorization": "Bearer start"})
    assert answer.json["name"] == "local"
    assert (
        client.get("/api/v1", base_url=base).status_code == 403
    )  # the page is the site's: it opens with the rest
    assert client.get("/enter?token=start", base_url=base).status_code == 303
    assert client.get("/api/v1", base_url=base).status_code == 200
    assert client.get("/account/tokens", base_url=base).status_code == 404
    assert client.get("/api/v1/me", base_url=base).status_code == 401  # a session does not open it
    app.extensions["course"].store.close()
    store.close()
