"""Drafts of solutions."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "drafts",
        sa.Column("user", sa.String(64), nullable=False),
        sa.Column("problem", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("text", sa.LargeBinary(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("saved_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("user", "problem", name="pk_drafts"),
    )


def downgrade() -> None:
    op.drop_table("drafts")
