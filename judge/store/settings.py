"""Where the data lives. Read from the environment (`COURSE_DATA_DIR`, `COURSE_DATABASE_URL`), so that the
site and its workers, started apart from each other, find the same database."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

ROOT = Path(__file__).resolve().parents[2]


class StoreSettings(BaseSettings):
    """Settings that everything which opens the database needs."""

    model_config = SettingsConfigDict(env_prefix="COURSE_", frozen=True)

    data_dir: Path = Field(
        default=ROOT / "var", description="Folder of the database, the session key and the logs."
    )
    database_url: str = Field(
        default="",
        description="SQLAlchemy URL of the database. Empty: the SQLite file `course.db` in the data folder.",
    )

    log_format: Literal["text", "json"] = Field(
        default="text",
        description="`json`: a JSON object a line on stderr, with a line for each request.",
    )

    @property
    def packages(self) -> Path:
        """The folder of problem packages by version (`judge.archive`)."""
        return self.data_dir / "packages"

    @property
    def url(self) -> str:
        """The URL to connect to; makes the data folder (private to this user) when SQLite is to live in
        it."""
        if self.database_url:
            return self.database_url
        self.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        return f"sqlite:///{self.data_dir.resolve() / 'course.db'}"
