"""The site's settings: read from the environment once, at start, and passed on. `web/README.md` lists
them."""

from __future__ import annotations

import secrets
from pathlib import Path

from pydantic import Field, SecretStr

from judge.store import StoreSettings


class Settings(StoreSettings):
    """Settings of the site; the data folder and the database come from `StoreSettings`."""

    host: str = Field(
        default="127.0.0.1", description="Address to listen on. Local mode is made for loopback only."
    )
    published_on_loopback: bool = Field(
        default=False,
        description="In a container whose port is published on a loopback address only: lets COURSE_HOST be any address.",
    )
    port: int = Field(default=8000, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    token: SecretStr = Field(
        default=SecretStr(""),
        description="Token of the start address. Empty: drawn at each start, and printed with the address.",
    )
    threads: int = Field(
        default=24,
        ge=4,
        description="Threads of the web server. Each open live view holds one while it watches.",
    )
    streams: int = Field(
        default=3, ge=1, description="Live views that one user may have open; more fall back to polling."
    )
    max_body_kb: int = Field(
        default=4096, ge=64, description="Largest request body in KiB; a larger one gets a 413 page."
    )

    def session_key(self) -> bytes:
        """The key that signs sessions: made at the first start and kept in the data folder, so that a
        browser stays signed in across restarts. Raises ValueError for a damaged file."""
        return _kept_key(self.data_dir / "session.key")


def _kept_key(path: Path) -> bytes:
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        draft.touch(mode=0o600)
        draft.write_bytes(secrets.token_bytes(32))
        try:
            path.hardlink_to(draft)  # fails if another process was first: then its key counts
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    key = path.read_bytes()
    if len(key) < 32:
        raise ValueError(
            f"{path} is damaged: remove it and start again (browsers then open the start address anew)"
        )
    return key
