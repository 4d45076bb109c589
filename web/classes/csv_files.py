"""CSV files that people open in a spreadsheet."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from flask import Response

# A cell that begins so is a formula to a spreadsheet, in fullwidth too; tab and return can stand before one.
FORMULA = tuple("=+-@\t\r＝＋－＠")


def safe(cell: object) -> str:
    """The cell as text that no spreadsheet takes for a formula. Our own numbers stay numbers."""
    text = str(cell)
    if isinstance(cell, int | float):
        return text
    return f"'{text}" if text.lstrip(" ").startswith(FORMULA) else text


def csv_response(name: str, rows: Iterable[Sequence[object]]) -> Response:
    """A download; UTF-8 with a byte order mark, without which Excel reads Chinese as GBK. `name`: ASCII."""
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_MINIMAL)
    for row in rows:
        writer.writerow([safe(cell) for cell in row])
    response = Response("\ufeff" + file.getvalue(), mimetype="text/csv")
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    response.headers["Cache-Control"] = "no-store"
    return response
