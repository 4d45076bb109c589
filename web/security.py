"""Headers that tell the browser what our pages may do. Scripts come from our own files only; the one style
sheet that a script writes (the editor's) carries the nonce of its page. Workers come from our own files too, and only the
answer that is a worker's own script lets it compile WebAssembly (`allow_wasm`): a worker keeps to the headers it came with, so
no page needs that."""

from __future__ import annotations

import secrets

from flask import Flask, Response, g


def nonce() -> str:
    """The nonce of this response."""
    if "nonce" not in g:
        g.nonce = secrets.token_urlsafe(16)
    value: str = g.nonce
    return value


def allow_wasm() -> None:
    """Let what this response is compile WebAssembly. For scripts that run in a worker."""
    g.wasm = True


def init_app(app: Flask) -> None:
    app.jinja_env.globals["nonce"] = nonce
    app.after_request(_add_headers)


def _add_headers(response: Response) -> Response:
    style = f"'self' 'nonce-{g.nonce}'" if "nonce" in g else "'self'"
    response.headers["Content-Security-Policy"] = "; ".join(
        [
            "default-src 'none'",
            "script-src 'self' 'wasm-unsafe-eval'" if g.get("wasm") else "script-src 'self'",
            "worker-src 'self'",
            f"style-src {style}",
            "img-src 'self' data:",
            "font-src 'self'",
            "connect-src 'self'",
            "form-action 'self'",
            "base-uri 'none'",
            "frame-ancestors 'none'",
        ]
    )
    response.headers["X-Content-Type-Options"] = "nosniff"
    # Not "no-referrer": that would also make the Origin of our own forms "null".
    response.headers["Referrer-Policy"] = "same-origin"
    response.headers["Cross-Origin-Opener-Policy"] = "same-origin"
    response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
    if response.mimetype == "text/html":
        response.headers.setdefault("Cache-Control", "no-store")
    return response
