"""Built front-end files by the name they have in the source: `asset("app.css")` is the address of the built
file, whose name holds its hash, so browsers may keep it for ever. `tools/frontend.py build` writes files
and manifest."""

from __future__ import annotations

import json
from pathlib import Path

from flask import Flask, Response, request, url_for

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
        return url_for("static", filename=f"build/{manifest[name]}")

    @app.after_request
    def _keep(response: Response) -> Response:
        if request.path.startswith("/static/build/") and response.status_code in (200, 304):
            response.headers["Cache-Control"] = "public, max-age=31536000, immutable"
        return response

    app.jinja_env.globals["asset"] = asset
