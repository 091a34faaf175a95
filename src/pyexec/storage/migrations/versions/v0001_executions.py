"""The table of executions."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "executions",
        sa.Column("number", sa.Integer(), primary_key=True, autoincrement=True),
        sa.Column("id", sa.String(32), nullable=False, unique=True),
        sa.Column("owner", sa.String(512), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("label", sa.String(200)),
        sa.Column("request_id", sa.String(200)),
        sa.Column("directory", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("strategy", sa.String(32), nullable=False),
        sa.Column("python", sa.String(), nullable=False),
        sa.Column("python_version", sa.String(32)),
        sa.Column("notes", sa.JSON(), nullable=False),
        sa.Column("dependencies", sa.JSON()),
        sa.Column("timeout_seconds", sa.Float(), nullable=False),
        sa.Column("stream", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.Float(), nullable=False),
        sa.Column("started_at", sa.Float()),
        sa.Column("ended_at", sa.Float()),
        sa.Column("pid", sa.Integer()),
        sa.Column("outcome", sa.JSON()),
        sa.UniqueConstraint("owner", "request_id", name="uq_executions_owner_request_id"),
    )
    op.create_index("ix_executions_owner_number", "executions", ["owner", "number"])
    op.create_index("ix_executions_owner_state_number", "executions", ["owner", "state", "number"])
