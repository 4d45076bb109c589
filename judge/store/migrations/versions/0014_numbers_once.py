"""On SQLite, the number of a deleted submission or announcement is not given to the next one: a link, a page that is still
open and the audit log name things by it. PostgreSQL's sequences never went back."""

from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

TABLES = ("submissions", "announcements")


def upgrade() -> None:
    _copy(once=True)


def downgrade() -> None:
    _copy(once=False)


def _copy(*, once: bool) -> None:
    """SQLite counts on only where the table was made so: each is made anew, with its rows, indices and foreign keys. Those
    of others that point to it (a judgement's) go by its name, and `env` has them off meanwhile."""
    if op.get_bind().dialect.name != "sqlite":
        return
    for table in TABLES:
        with op.batch_alter_table(table, recreate="always", table_kwargs={"sqlite_autoincrement": once}):
            pass
