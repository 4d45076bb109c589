"""Fair turns: a share for each user, a priority for each submission, the time it was queued."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "shares",
        sa.Column("user", sa.String(64), nullable=False),
        sa.Column("virtual_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("user", name="pk_shares"),
    )
    # Plain ADD COLUMN, which SQLite can do: copying the table would lose its circle of foreign keys.
    op.add_column("submissions", sa.Column("priority", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("submissions", sa.Column("queued_at", sa.Double(), nullable=False, server_default="0"))
    op.add_column("submissions", sa.Column("charged_s", sa.Double(), nullable=False, server_default="0"))
    op.execute("UPDATE submissions SET queued_at = created_at")


def downgrade() -> None:
    for column in ("charged_s", "queued_at", "priority"):
        op.drop_column("submissions", column)
    op.drop_table("shares")
