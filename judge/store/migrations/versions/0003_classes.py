"""Classes: members, invitations, assignments, announcements."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def _to(table: str, column: str, target: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        [column], [f"{target}.id"], name=f"fk_{table}_{column}", ondelete="CASCADE"
    )


def upgrade() -> None:
    op.create_table(
        "classes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("time_zone", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("archived_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_classes"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "members",
        sa.Column("class_id", sa.Integer(), nullable=False),
        sa.Column("user_id", sa.Integer(), nullable=False),
        sa.Column("part", sa.String(16), nullable=False),
        sa.Column("joined_at", sa.Double(), nullable=False),
        sa.Column("account_made_here", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("class_id", "user_id", name="pk_members"),
        _to("members", "class_id", "classes"),
        _to("members", "user_id", "users"),
    )
    op.create_index("ix_members_user_id", "members", ["user_id"])
    op.create_table(
        "invitations",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("class_id", sa.Integer(), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("expires_at", sa.Double(), nullable=False),
        sa.Column("most_uses", sa.Integer(), nullable=False),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.Column("closed_at", sa.Double(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_invitations"),
        sa.UniqueConstraint("token_hash", name="uq_invitations_token_hash"),
        _to("invitations", "class_id", "classes"),
    )
    op.create_index("ix_invitations_class_id", "invitations", ["class_id"])
    op.create_table(
        "assignments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("class_id", sa.Integer(), nullable=False),
        sa.Column("title", sa.String(80), nullable=False),
        sa.Column("opens_at", sa.Double(), nullable=False),
        sa.Column("deadline_at", sa.Double(), nullable=False),
        sa.Column("late_until", sa.Double(), nullable=True),
        sa.Column("late_percent", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=True),
        sa.Column("partial", sa.Boolean(), nullable=False),
        sa.Column("references_at", sa.Double(), nullable=True),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_assignments"),
        _to("assignments", "class_id", "classes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_assignments_class_id", "assignments", ["class_id"])
    op.create_table(
        "assigned_problems",
        sa.Column("assignment_id", sa.Integer(), nullable=False),
        sa.Column("problem", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("points", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("assignment_id", "problem", name="pk_assigned_problems"),
        sa.UniqueConstraint("assignment_id", "position", name="uq_assigned_problems_assignment_id_position"),
        _to("assigned_problems", "assignment_id", "assignments"),
    )
    op.create_index("ix_assigned_problems_problem", "assigned_problems", ["problem"])
    op.create_table(
        "announcements",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("class_id", sa.Integer(), nullable=False),
        sa.Column("author", sa.String(80), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_announcements"),
        _to("announcements", "class_id", "classes"),
    )
    op.create_index("ix_announcements_class_id", "announcements", ["class_id"])


def downgrade() -> None:
    for table in ("announcements", "assigned_problems", "assignments", "invitations", "members", "classes"):
        op.drop_table(table)
