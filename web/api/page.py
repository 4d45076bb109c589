"""The OpenAPI document at /api/v1/openapi.json, and the same as a page for people, at /api/v1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flask import Blueprint, jsonify, render_template, request
from flask.wrappers import Response

from web.api.document import document
from web.services import services

blueprint = Blueprint("api_page", __name__, url_prefix="/api/v1", template_folder="templates")


@dataclass(frozen=True)
class Field:
    name: str
    kind: str
    required: bool
    text: str


@dataclass(frozen=True)
class Operation:
    """One endpoint as the page shows it. `gives`: the fields of the answer that is no refusal."""

    method: str
    path: str
    summary: str
    asks: list[Field]
    code: str
    gives: list[Field]
    refusals: list[str]


@blueprint.get("/openapi.json")
def openapi() -> Response:
    return jsonify(document())


@blueprint.get("")
def show() -> str:
    """What there is, in words."""
    made = document()
    address = services().settings.site_url or request.host_url.rstrip("/")
    command = f"python practice/judge.py test ID FILE --remote {address} --token-file token.txt"
    return render_template("api/show.html", operations=_operations(made), command=command)


def _operations(made: dict[str, Any]) -> list[Operation]:
    schemas = made["components"]["schemas"]
    return [
        _operation(method.upper(), path, entry, schemas)
        for path, methods in made["paths"].items()
        for method, entry in methods.items()
    ]


def _operation(method: str, path: str, entry: dict[str, Any], schemas: dict[str, Any]) -> Operation:
    asks = [
        Field(p["name"], _kind(p["schema"]), p["required"], p["schema"].get("description", ""))
        for p in entry.get("parameters", [])
    ]
    if "requestBody" in entry:
        asks += _fields(entry["requestBody"], schemas)
    code = next(code for code in entry["responses"] if code.startswith("2"))
    return Operation(
        method=method,
        path=path,
        summary=entry["summary"],
        asks=asks,
        code=code,
        gives=_fields(entry["responses"][code], schemas),
        refusals=sorted(c for c in entry["responses"] if c != code),
    )


def _fields(holder: dict[str, Any], schemas: dict[str, Any]) -> list[Field]:
    name = holder["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
    schema = schemas[name]
    required = schema.get("required", [])
    return [
        Field(field, _kind(entry), field in required, entry.get("description", ""))
        for field, entry in schema["properties"].items()
    ]


def _kind(schema: dict[str, Any]) -> str:
    """A type in a few characters."""
    if "$ref" in schema:
        name: str = schema["$ref"].rpartition("/")[2]
        return name
    if "anyOf" in schema:
        return " | ".join(_kind(one) for one in schema["anyOf"])
    if schema.get("enum"):
        return " | ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"[{_kind(schema.get('items') or {})}]"
    return str(schema.get("type", "any"))
