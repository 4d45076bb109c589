"""The OpenAPI document, in the language of whoever asks. The verdict's schema is the judge's own file."""

from __future__ import annotations

import copy
import json
from functools import cache
from typing import Any, cast

from flask import current_app
from flask_babel import gettext
from flask_openapi3.openapi import OpenAPI

from judge.packages import ROOT

VERDICT = ROOT / "judge" / "verdict.schema.json"
COMPONENT = "#/components/schemas/Verdict"
TRANSLATED = ("summary", "description")


def document() -> dict[str, Any]:
    """All of it, as JSON has it."""
    made = copy.deepcopy(cast(OpenAPI, current_app).api_doc)
    made["components"]["schemas"]["Verdict"] = _verdict()
    details = made["components"]["schemas"]["SubmissionDetails"]["properties"]
    details["cases"]["items"] = {"$ref": f"{COMPONENT}/$defs/case"}
    details["verdict"] = {
        "description": details["verdict"]["description"],
        "anyOf": [{"$ref": COMPONENT}, {"type": "null"}],
    }
    found: dict[str, Any] = _translated(made)
    return found


@cache
def _verdict() -> dict[str, Any]:
    """The schema as a component: its references lead to where it stands in the document."""
    text = VERDICT.read_text("utf-8").replace('"#/$defs/', f'"{COMPONENT}/$defs/')
    schema: dict[str, Any] = json.loads(text)
    schema.pop("$schema")
    return schema


def _translated(node: Any) -> Any:
    if isinstance(node, list):
        return [_translated(one) for one in node]
    if not isinstance(node, dict):
        return node
    return {
        key: gettext(value) if key in TRANSLATED and isinstance(value, str) and value else _translated(value)
        for key, value in node.items()
    }
