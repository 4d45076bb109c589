"""Built front-end files by the name they have in the source: `asset("app.css")` is the address of the built
file, whose name holds its hash, so browsers may keep it for ever. `tools/frontend.py build` writes files
and manifest."""

from __future__ import annotations

import json
import mimetypes
from pathlib import Path

from flask import Flask, Response, request, send_from_directory, url_for

from web.security import allow_wasm

WASM_WORKER = "ruff-worker-"  # how the built name of the worker begins that compiles WebAssembly
BUILD = Path(__file__).parent / "static" / "build"


class FrontendMissing(RuntimeError):
    """The front end has not been built."""


def load_manifest(build: Path = BUILD) -> dict[str, str]:
    """Source name -> built name. Raises FrontendMissing."""
    try:
        manifest: dict[str, str] = json.loads((build / "manifest.json").read_text("utf-8"))["files"]
    except FileNotFoundError:
        raise FrontendMissing("the front end is not built: run `python tools/frontend.py build`") from None
    return manifest


def init_app(app: Flask) -> None:
    manifest = load_manifest()

    def asset(name: str) -> str:
        return url_for("built", name=manifest[name])

    app.add_url_rule("/static/build/<path:name>", "built", _built)
    app.jinja_env.globals["asset"] = asset


def _built(name: str) -> Response:
    """A built file, compressed for those who take it so."""
    if name.startswith(WASM_WORKER):
        allow_wasm()
    small = f"{name}.gz"
    if request.accept_encodings["gzip"] and (BUILD / small).is_file() and Path(name).parent == Path():
        response = send_from_directory(BUILD, small, mimetype=mimetypes.guess_type(name)[0])
        response.headers["Content-Encoding"] = "gzip"
    else:
        response = send_from_directory(BUILD, name)
    response.headers["Vary"] = "Accept-Encoding"
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
    return response
