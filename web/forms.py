"""What a form sent, as bytes. The framework decodes form fields and replaces what is no UTF-8; but a
submission must reach the judge as it is, so that it can say what is wrong with it."""

from __future__ import annotations

from urllib.parse import parse_qsl

from flask import g, request
from werkzeug.exceptions import BadRequest
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Event, Field, File, MultipartDecoder, NeedData

MAX_PARTS = 1000  # the form of an assignment has two for each problem


def read_form() -> None:
    """Read the body of this request, if it is a form, before anything else looks at it. Raises BadRequest
    for a form that cannot be read."""
    body = request.get_data(cache=True)
    kind, options = parse_options_header(request.headers.get("Content-Type"))
    try:
        if kind == "application/x-www-form-urlencoded":
            g.fields = _urlencoded(body)
        elif kind == "multipart/form-data":
            g.fields = _multipart(body, options["boundary"].encode("latin-1"))
    except (ValueError, KeyError):
        raise BadRequest("the form cannot be read") from None


def fields() -> dict[str, bytes]:
    """The fields of the form that was sent; of a repeated name, the first. A file's field with nothing
    chosen is left out. Raises BadRequest if the body is no form."""
    if "fields" not in g:
        raise BadRequest("a form is expected")
    found: dict[str, bytes] = g.fields
    return found


def _urlencoded(body: bytes) -> dict[str, bytes]:
    # Latin-1 there and back: every byte stays what it is.
    pairs = parse_qsl(
        body.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_PARTS, encoding="latin-1"
    )
    return {name: value.encode("latin-1") for name, value in reversed(pairs)}


def _multipart(body: bytes, boundary: bytes) -> dict[str, bytes]:
    decoder = MultipartDecoder(boundary, max_parts=MAX_PARTS)
    decoder.receive_data(body)
    decoder.receive_data(None)
    fields: dict[str, bytes] = {}
    part: File | Field | None = None
    content = bytearray()
    event: Event = decoder.next_event()
    while not isinstance(event, Epilogue | NeedData):
        if isinstance(event, File | Field):
            if event.name is None:  # the framework's own form would break on it
                raise ValueError("a part without a name")
            part, content = event, bytearray()
        elif isinstance(event, Data) and part is not None:
            content += event.data
            chosen = not isinstance(part, File) or part.filename or content
            if not event.more_data and chosen:
                fields.setdefault(part.name, bytes(content))
        event = decoder.next_event()
    return fields
