"""The tables, and the number that says which shape they have."""

from sqlalchemy import JSON, Boolean, Column, Float, Index, Integer, MetaData, String, Table, UniqueConstraint

from pyexec.storage.column_types import NUMBER, text

SCHEMA_VERSION = 2
"""Raised with each migration; any server can ask cheaply: SQLite keeps it as `user_version`, PostgreSQL in a table."""

metadata = MetaData()

executions = Table(
    "executions",
    metadata,
    Column("number", NUMBER, primary_key=True, autoincrement=True),
    Column("id", text(32), nullable=False, unique=True),
    Column("owner", text(512), nullable=False),
    Column("state", text(16), nullable=False),
    Column("kind", text(32), nullable=False),
    Column("label", text(200)),
    Column("request_id", text(200)),
    Column("directory", String, nullable=False),
    Column("source", String, nullable=False),
    Column("strategy", text(32), nullable=False),
    Column("python", String, nullable=False),
    Column("python_version", text(32)),
    Column("notes", JSON, nullable=False),
    Column("dependencies", JSON),
    Column("timeout_seconds", Float, nullable=False),
    Column("stream", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("pid", Integer),
    Column("outcome", JSON),
    Column("session", text(64)),
    UniqueConstraint("owner", "request_id", name="uq_executions_owner_request_id"),
    Index("ix_executions_owner_number", "owner", "number"),
    Index("ix_executions_owner_session_number", "owner", "session", "number"),
    Index("ix_executions_owner_state_number", "owner", "state", "number"),
    # Nobody asks for the number that a new row was given.
    implicit_returning=False,
)
