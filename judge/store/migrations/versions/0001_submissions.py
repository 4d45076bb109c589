"""Submissions, their judgements, and the cases of those that run."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "submissions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("user", sa.String(64), nullable=False),
        sa.Column("problem", sa.Integer(), nullable=False),
        sa.Column("version", sa.String(16), nullable=False),
        sa.Column("source", sa.LargeBinary(), nullable=False),
        sa.Column("public_only", sa.Boolean(), nullable=False),
        sa.Column("seed", sa.LargeBinary(16), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("claimed_at", sa.Double(), nullable=True),
        sa.Column("finished_at", sa.Double(), nullable=True),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(128), nullable=True),
        sa.Column("lease_until", sa.Double(), nullable=True),
        sa.Column("child_started", sa.Boolean(), nullable=False),
        sa.Column("crashes", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=True),
        sa.Column("current_judgement", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_submissions"),
    )
    op.create_index("ix_submissions_status_id", "submissions", ["status", "id"])
    op.create_index("ix_submissions_status_lease_until", "submissions", ["status", "lease_until"])
    op.create_index("ix_submissions_user_problem_id", "submissions", ["user", "problem", "id"])
    op.create_table(
        "judgements",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("submission", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(16), nullable=False),
        sa.Column("passed", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("tier", sa.String(16), nullable=False),
        sa.Column("verdict", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.Double(), nullable=False),
        sa.Column("waited_s", sa.Double(), nullable=False),
        sa.Column("judged_s", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_judgements"),
        sa.ForeignKeyConstraint(
            ["submission"], ["submissions.id"], name="fk_judgements_submission", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_judgements_submission", "judgements", ["submission"])
    op.create_table(
        "cases",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("submission", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("result", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_cases"),
        sa.ForeignKeyConstraint(
            ["submission"], ["submissions.id"], name="fk_cases_submission", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("submission", "attempt", "seq", name="uq_cases_submission_attempt_seq"),
    )
    with op.batch_alter_table("submissions") as table:
        table.create_foreign_key(
            "fk_submissions_current_judgement", "judgements", ["current_judgement"], ["id"]
        )


def downgrade() -> None:
    with op.batch_alter_table("submissions") as table:
        table.drop_constraint("fk_submissions_current_judgement", type_="foreignkey")
    op.drop_table("cases")
    op.drop_table("judgements")
    op.drop_table("submissions")
