"""The table of executions."""

import sqlalchemy as sa
from alembic import op

from pyexec.storage.column_types import NUMBER, text

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        "executions",
        sa.Column("number", NUMBER, primary_key=True, autoincrement=True),
        sa.Column("id", text(32), nullable=False, unique=True),
        sa.Column("owner", text(512), nullable=False),
        sa.Column("state", text(16), nullable=False),
        sa.Column("kind", text(32), nullable=False),
        sa.Column("label", text(200)),
        sa.Column("request_id", text(200)),
        sa.Column("directory", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("strategy", text(32), nullable=False),
        sa.Column("python", sa.String(), nullable=False),
        sa.Column("python_version", text(32)),
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
