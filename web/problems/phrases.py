"""What the editor itself says: its search, its lists, what a screen reader hears. The keys are CodeMirror's."""

from __future__ import annotations

from flask_babel import gettext


def editor_phrases() -> dict[str, str]:
    """CodeMirror's phrase -> the reader's language."""
    return {
        "Find": gettext("Find"),
        "Replace": gettext("Replace"),
        "next": gettext("next"),
        "previous": gettext("previous"),
        "all": gettext("all"),
        "match case": gettext("match case"),
        "regexp": gettext("regular expression"),
        "by word": gettext("whole words"),
        "replace": gettext("replace"),
        "replace all": gettext("replace all"),
        "close": gettext("close"),
        "current match": gettext("current match"),
        "on line": gettext("on line"),
        "replaced match on line $": gettext("replaced the match on line $"),
        "replaced $ matches": gettext("replaced $ matches"),
        "Go to line": gettext("Go to line"),
        "go": gettext("go"),
        "Completions": gettext("Completions"),
        "Diagnostics": gettext("Messages about the program"),
        "No diagnostics": gettext("No messages"),
        "Control character": gettext("Control character"),
        "Selection deleted": gettext("Selection deleted"),
    }
