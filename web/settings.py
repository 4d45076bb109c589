"""The site's settings: read from the environment once, at start, and passed on. `web/README.md` lists
them."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, field_validator, model_validator

from judge.store import StoreSettings


class Settings(StoreSettings):
    """Settings of the site; the data folder and the database come from `StoreSettings`."""

    accounts: Literal["none", "password"] = Field(
        default="none",
        description="`none`: one user, no login, loopback only. `password`: accounts with passwords, classes, teachers.",
    )
    registration: Literal["roster", "link", "open"] = Field(
        default="roster",
        description="Who gets an account: those whom a teacher enters; also those with a class's link; everybody.",
    )
    site_url: str = Field(
        default="",
        description="With accounts: the address that people open, such as `https://course.example.edu`.",
    )
    oidc_issuer: str = Field(
        default="",
        description="With accounts: the OpenID Connect issuer to sign in with, such as `https://id.example.edu`.",
    )
    oidc_client_id: str = Field(default="", description="What the issuer calls this site.")
    oidc_client_secret: SecretStr = Field(
        default=SecretStr(""), description="The secret it shares with this site."
    )
    oidc_name: str = Field(default="OpenID Connect", description="What the button to sign in elsewhere says.")
    oidc_login_claim: str = Field(
        default="preferred_username",
        description="The claim that holds the sign-in name as rosters write it.",
    )
    proxies: int = Field(
        default=0,
        ge=0,
        le=4,
        description="Proxies in front that set X-Forwarded-For: as many of its entries are believed, from the right.",
    )
    limits_url: str = Field(
        default="memory://",
        description="Where limits are counted; a store such as `redis://...` if several web processes run.",
    )
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
    metrics_token: SecretStr = Field(
        default=SecretStr(""),
        description="Opens `/metrics` to whoever sends it as a bearer token. Empty: there are none.",
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

    @field_validator("site_url")
    @classmethod
    def _origin(cls, url: str) -> str:
        """Only scheme, host and port: it is compared with what browsers send as Origin."""
        if not url:
            return url
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
            raise ValueError("must look like https://course.example.edu, without a path")
        return f"{parts.scheme}://{parts.netloc.lower()}"

    @model_validator(mode="after")
    def _reachable(self) -> Self:
        if self.site_url and self.accounts == "none":
            raise ValueError(
                "COURSE_SITE_URL needs accounts: set COURSE_ACCOUNTS=password (without them anybody could submit)"
            )
        if self.oidc_issuer and (self.accounts == "none" or not self.oidc_client_id):
            raise ValueError("COURSE_OIDC_ISSUER needs COURSE_ACCOUNTS=password and COURSE_OIDC_CLIENT_ID")
        return self

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
