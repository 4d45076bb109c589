"""Folders for Unix sockets: private to their user, and short, since a socket's path has room for about a hundred bytes."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

# sun_path: 108 bytes on Linux, 104 on macOS, the closing NUL included.
PATH_BYTES = 103
NAME_BYTES = 32  # the longest file name that is put into such a folder


def socket_folder(name: str, *, make: bool = True) -> Path:
    """A folder called `name`, readable by this user only, in which sockets of NAME_BYTES fit.

    It stands in XDG_RUNTIME_DIR, in the folder for temporary files or in /tmp: the first whose path is short enough.
    Raises PermissionError if somebody else made it. Without `make`, one that is not there is named only.
    """
    bases = [os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp"]
    fitting = [
        Path(b) / name for b in bases if b and len(os.fsencode(b)) + len(name) + 2 + NAME_BYTES <= PATH_BYTES
    ]
    folder = next((f for f in fitting if f.parent.is_dir()), None)
    if folder is None:
        raise PermissionError(
            f"no folder for sockets: set TMPDIR to one with a short path (now {tempfile.gettempdir()})"
        )
    if not make and not folder.exists():
        return folder
    folder.mkdir(mode=0o700, exist_ok=True)
    info = folder.lstat()
    if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid() or info.st_mode & 0o077:
        raise PermissionError(
            f"{folder} is not a folder that only you can enter: remove it, or set TMPDIR to a private one"
        )
    return folder
