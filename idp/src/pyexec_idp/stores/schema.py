"""The tables. Times are seconds since the epoch (UTC); what was secret is kept as a hash only."""

from sqlalchemy import JSON, Boolean, Column, Float, ForeignKey, Index, Integer, MetaData, String, Table, Text

SCHEMA_VERSION = "0001"
"""The newest migration."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

_CLIENT_ID = String(500)
_URL = String(2000)

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
    Column("user_id", String(32), ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
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
    Index(None, "at"),
)

audit = Table(
    "audit",
    metadata,
    Column("number", Integer, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("what", String(64), nullable=False),
    Column("user_id", String(32)),
    Column("client_id", _CLIENT_ID),
    Column("address", String(64)),
    Column("detail", JSON, nullable=False),
    Index(None, "at"),
)

clients = Table(
    "clients",
    metadata,
    Column("id", _CLIENT_ID, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("origin", String(16), nullable=False),
    Column("auth_method", String(32), nullable=False),
    Column("secret_hash", String(64)),
    Column("redirect_uris", JSON, nullable=False),
    Column("grant_types", JSON, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("post_logout_redirect_uris", JSON, nullable=False),
    Column("introspects", JSON, nullable=False),
    Column("uri", _URL),
    Column("created_at", Float, nullable=False),
    Column("used_at", Float),
    Index(None, "origin", "used_at"),
)

resources = Table(
    "resources",
    metadata,
    Column("url", _URL, primary_key=True),
    Column("name", String(200), nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("is_default", Boolean, nullable=False),
)

# No foreign key to clients: what a client's document says is not kept here.
grants = Table(
    "grants",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("user_id", String(32), ForeignKey("users.id", ondelete="CASCADE"), nullable=False),
    Column("client_id", _CLIENT_ID, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("resource", _URL, nullable=False),
    Column("auth_time", Float, nullable=False),
    Column("created_at", Float, nullable=False),
    Column("used_at", Float),
    Column("revoked_at", Float),
    Index(None, "user_id"),
    Index(None, "client_id"),
)

codes = Table(
    "codes",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("grant_id", String(32), ForeignKey("grants.id", ondelete="CASCADE"), nullable=False),
    Column("redirect_uri", _URL, nullable=False),
    Column("challenge", String(128), nullable=False),
    Column("nonce", Text),
    Column("expires_at", Float, nullable=False),
    Column("used_at", Float),
    Index(None, "grant_id"),
    Index(None, "expires_at"),
)

refresh_tokens = Table(
    "refresh_tokens",
    metadata,
    Column("hash", String(64), primary_key=True),
    Column("grant_id", String(32), ForeignKey("grants.id", ondelete="CASCADE"), nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("replaced_at", Float),
    Column("successor", String(64)),
    Index(None, "grant_id"),
    Index(None, "expires_at"),
)

revoked_tokens = Table(
    "revoked_tokens",
    metadata,
    Column("jti", String(100), primary_key=True),
    Column("expires_at", Float, nullable=False),
    Index(None, "expires_at"),
)

consents = Table(
    "consents",
    metadata,
    Column("user_id", String(32), ForeignKey("users.id", ondelete="CASCADE"), primary_key=True),
    Column("client_id", _CLIENT_ID, primary_key=True),
    Column("resource", _URL, primary_key=True),
    Column("scopes", JSON, nullable=False),
    Column("given_at", Float, nullable=False),
)

devices = Table(
    "devices",
    metadata,
    Column("code_hash", String(64), primary_key=True),
    Column("user_code", String(16), nullable=False, unique=True),
    Column("client_id", _CLIENT_ID, nullable=False),
    Column("scopes", JSON, nullable=False),
    Column("resource", _URL, nullable=False),
    Column("expires_at", Float, nullable=False),
    Column("interval", Float, nullable=False),
    Column("polled_at", Float),
    Column("grant_id", String(32), ForeignKey("grants.id", ondelete="CASCADE")),
    Column("denied_at", Float),
    Index(None, "expires_at"),
)
