"""The API of a site, asked from a terminal. Every wait has an end, no redirect is followed (the token would go along), and
whatever goes wrong is a `SiteError` that says what to do."""

from __future__ import annotations

import http.client
import ipaddress
import json
import time
import urllib.error
import urllib.request
from typing import Any
from urllib.parse import urlsplit

from practice.remote_texts import text

ANSWER_S = 30.0  # for one answer, however slowly it comes
MOST_BYTES = 64 << 20
USAGE, SYSTEM = 2, 3


class SiteError(Exception):
    """Something that ends the command with status `code`. `again_s`: asking again after so many seconds may help. `unsure`:
    the request may have been carried out all the same."""

    def __init__(self, said: str, code: int, again_s: float | None = None, *, unsure: bool = False) -> None:
        super().__init__(said)
        self.code, self.again_s, self.unsure = code, again_s, unsure


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        return None  # then it is an HTTPError like any other


def check_address(url: str, insecure: bool, lang: str) -> str:
    """The site's address without a slash at its end. Raises SiteError for what is none, or what would send the token in
    the clear over a network."""
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname or "", parts.port
    except ValueError:
        raise SiteError(text("no_address", lang, url=url), USAGE) from None
    rest = parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password
    fits = parts.netloc.isascii() and parts.netloc.isprintable() and " " not in parts.netloc
    if parts.scheme not in ("http", "https") or not host or not fits or rest:
        # What is after the host may hold a token: it is not repeated.
        raise SiteError(text("no_address", lang, url=f"{parts.scheme}://{host}" if host else url), USAGE)
    if parts.scheme == "http" and not insecure and not is_loopback(host):
        raise SiteError(text("insecure", lang, host=host), USAGE)
    return f"{parts.scheme}://{parts.netloc}"


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Site:
    """A site and a token for it."""

    def __init__(self, address: str, token: str, lang: str) -> None:
        self.address, self.lang = address, lang
        self._headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json",
            "Accept-Language": lang,
        }
        handlers: list[Any] = [_NoRedirect()]
        if is_loopback(urlsplit(address).hostname or ""):
            handlers.append(urllib.request.ProxyHandler({}))
        self._opener = urllib.request.build_opener(*handlers)

    def get(self, path: str) -> dict[str, Any]:
        """The answer to GET /api/v1`path`. Raises SiteError."""
        return self._ask("GET", path, None)

    def post(self, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        """The answer to POST /api/v1`path`. Raises SiteError."""
        return self._ask("POST", path, json.dumps(body or {}).encode())

    def _ask(self, method: str, path: str, body: bytes | None) -> dict[str, Any]:
        headers = self._headers | ({"Content-Type": "application/json"} if body is not None else {})
        request = urllib.request.Request(f"{self.address}/api/v1{path}", body, headers, method=method)
        ends = time.monotonic() + ANSWER_S
        try:
            with self._opener.open(request, timeout=ANSWER_S) as answer:
                return self._object(_read(answer, ends))
        except urllib.error.HTTPError as refused:
            with refused:
                raise self._refused(refused, ends) from None
        except (OSError, http.client.HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise SiteError(
                text("no_answer", self.lang, url=self.address, reason=reason or type(error).__name__),
                SYSTEM,
                1.0,
                unsure=True,
            ) from None

    def _object(self, body: bytes) -> dict[str, Any]:
        try:
            found = json.loads(body)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise SiteError(text("no_api", self.lang, url=self.address), USAGE)
        return found

    def _refused(self, refused: urllib.error.HTTPError, ends: float) -> SiteError:
        """What the site said, in its own words, which come in our language."""
        if refused.code < 400:
            where = refused.headers.get("Location", "")
            return SiteError(text("moved", self.lang, url=self.address, to=where.split("?")[0]), USAGE)
        try:
            said = self._object(_read(refused, ends))
            words = f"{said['error']} {said['advice']}"
            words += "".join(f"\n  {f['path']}: {f['message']}" for f in said["fields"])
        except (SiteError, OSError, http.client.HTTPException, KeyError, TypeError):
            # A proxy, or something else than this course.
            again = 5.0 if refused.code >= 500 else None
            code = SYSTEM if again else USAGE
            said_so = text("strange", self.lang, url=self.address, code=refused.code)
            return SiteError(said_so, code, again, unsure=again is not None)
        if refused.code == 401:
            return SiteError(f"{text('token', self.lang)} {words}", USAGE)
        if refused.code == 429 or refused.code >= 500:
            wait = refused.headers.get("Retry-After", "")
            seconds = float(wait) if wait.isdecimal() and len(wait) < 6 else 5.0
            if refused.code == 429:
                words += " " + text("wait", self.lang, seconds=round(seconds))
            return SiteError(words, SYSTEM, seconds)
        return SiteError(words, USAGE)


def _read(answer: Any, ends: float) -> bytes:
    """A body, in the time and the size that there are. Raises TimeoutError and OSError."""
    body = bytearray()
    while part := answer.read1(1 << 16):
        body += part
        if len(body) > MOST_BYTES:
            raise OSError(f"more than {MOST_BYTES >> 20} MiB")
        if time.monotonic() > ends:
            raise TimeoutError(f"no complete answer in {ANSWER_S:.0f} s")
    if getattr(answer, "length", None):  # `read1` ends without an error where the connection did
        raise OSError(f"{answer.length} bytes are missing at the end")
    return bytes(body)
