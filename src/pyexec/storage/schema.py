"""The tables, and the number that says which shape they have."""

from sqlalchemy import JSON, Boolean, Column, Float, Index, Integer, MetaData, String, Table, UniqueConstraint

SCHEMA_VERSION = 2
"""Raised with each migration; SQLite keeps it as `user_version`, so that any server can ask cheaply."""

metadata = MetaData()

executions = Table(
    "executions",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("owner", String(512), nullable=False),
    Column("state", String(16), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("label", String(200)),
    Column("request_id", String(200)),
    Column("directory", String, nullable=False),
    Column("source", String, nullable=False),
    Column("strategy", String(32), nullable=False),
    Column("python", String, nullable=False),
    Column("python_version", String(32)),
    Column("notes", JSON, nullable=False),
    Column("dependencies", JSON),
    Column("timeout_seconds", Float, nullable=False),
    Column("stream", Boolean, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("started_at", Float),
    Column("ended_at", Float),
    Column("pid", Integer),
    Column("outcome", JSON),
    Column("session", String(64)),
    UniqueConstraint("owner", "request_id", name="uq_executions_owner_request_id"),
    Index("ix_executions_owner_number", "owner", "number"),
    Index("ix_executions_owner_session_number", "owner", "session", "number"),
    Index("ix_executions_owner_state_number", "owner", "state", "number"),
)
