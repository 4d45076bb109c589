"""Deadlines of their own for single learners, and who was taken out of a class."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def _to(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{target}.id"], name=f"fk_{table}_{column}", ondelete="CASCADE"
    )


def upgrade() -> None:
    op.create_table(
        "extensions",
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("deadline_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("assignment_id", "user_id", name="pk_extensions"),
        _to("extensions", "assignment_id", "assignments"),
        _to("extensions", "user_id", "users"),
    )
    op.create_index("ix_extensions_user_id", "extensions", ["user_id"])
    op.create_table(
        "removals",
        sa.Column("class_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("removed_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("class_id", "user_id", name="pk_removals"),
        _to("removals", "class_id", "classes"),
        _to("removals", "user_id", "users"),
    )
    op.create_index("ix_removals_user_id", "removals", ["user_id"])


def downgrade() -> None:
    op.drop_table("removals")
    op.drop_table("extensions")
