"""The tables. Times are seconds since the epoch (UTC); what was secret is kept as a hash only."""

from sqlalchemy import JSON, Column, Float, ForeignKey, Index, Integer, MetaData, String, Table

metadata = MetaData(
    naming_convention={"ix": "ix_%(table_name)s_%(column_0_N_name)s", "fk": "fk_%(table_name)s_%(column_0_name)s"}
)

users = Table(
    "users",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("name", String(100), nullable=False, unique=True),
    Column("display_name", String(200)),
    Column("email", String(320)),
    Column("password_hash", String(255)),
    Column("created_at", Float, nullable=False),
    Column("disabled_at", Float),
)

sign_ins = Table(
    "sign_ins",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("id", String(32), nullable=False, unique=True),
    Column("user_id", ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("created_at", Float, nullable=False),
    Column("last_seen_at", Float, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("address", String(64), nullable=False),
    Column("user_agent", String(300), nullable=False),
    Index(None, "user_id"),
    Index(None, "expires_at"),
)

attempts = Table(
    "attempts",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("key", String(64), nullable=False),
    Column("at", Float, nullable=False),
    Index(None, "key", "at"),
)

audit = Table(
    "audit",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("what", String(64), nullable=False),
    Column("user_id", String(32)),
    Column("client_id", String(500)),
    Column("address", String(64)),
    Column("detail", JSON, nullable=False),
    Index(None, "at"),
)
