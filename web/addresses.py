"""Addresses that came from outside and are to be gone to."""

from __future__ import annotations


def own_page(wanted: str | None, otherwise: str) -> str:
    """`wanted` if it is the path of a page of ours, else `otherwise`. Tabs and line ends are left out of addresses by
    whoever reads them next: "/<tab>/elsewhere" would become "//elsewhere"."""
    if wanted and wanted.startswith("/") and not wanted.startswith(("//", "/\\")) and wanted.isprintable():
        return wanted
    return otherwise
