"""What a form sent, as bytes. The framework decodes form fields and replaces what is no UTF-8; but a
submission must reach the judge as it is, so that it can say what is wrong with it."""

from __future__ import annotations

from urllib.parse import parse_qsl

from flask import Request
from werkzeug.exceptions import BadRequest
from werkzeug.http import parse_options_header
from werkzeug.sansio.multipart import Data, Epilogue, Event, Field, File, MultipartDecoder, NeedData

MAX_PARTS = 32


def raw_fields(request: Request) -> dict[str, bytes]:
    """The fields of an urlencoded or multipart body; of a repeated name, the first. A file's field with
    nothing chosen is left out. Raises BadRequest for a body that is neither.

    The body must have been read with `get_data(cache=True)` before the form was looked at.
    """
    body = request.get_data(cache=True)
    kind, options = parse_options_header(request.headers.get("Content-Type"))
    try:
        if kind == "application/x-www-form-urlencoded":
            pairs = parse_qsl(body, keep_blank_values=True, max_num_fields=MAX_PARTS)
            return {name.decode("utf-8", "replace"): value for name, value in reversed(pairs)}
        if kind == "multipart/form-data":
            return _multipart(body, options["boundary"].encode("latin-1"))
    except (ValueError, KeyError):
        raise BadRequest("the form cannot be read") from None
    raise BadRequest("a form is expected")


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
            part, content = event, bytearray()
        elif isinstance(event, Data) and part is not None:
            content += event.data
            chosen = not isinstance(part, File) or part.filename or content
            if not event.more_data and chosen:
                fields.setdefault(part.name, bytes(content))
        event = decoder.next_event()
    return fields
