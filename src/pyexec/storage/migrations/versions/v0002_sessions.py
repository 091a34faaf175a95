"""Which session an execution was in."""

import sqlalchemy as sa
from alembic import op

from pyexec.storage.column_types import text

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the column."""
    op.add_column("executions", sa.Column("session", text(64)))
    op.create_index("ix_executions_owner_session_number", "executions", ["owner", "session", "number"])
