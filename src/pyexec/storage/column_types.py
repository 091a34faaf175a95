"""Types of columns that the two kinds of databases have in common."""

from sqlalchemy import BigInteger, Integer, String, Text
from sqlalchemy.types import TypeEngine

NUMBER: TypeEngine[int] = BigInteger().with_variant(Integer(), "sqlite")
"""A number that is given in turn: SQLite does that for plain integers only, which are as large there."""


def text(length: int) -> TypeEngine[str]:
    """Return a text that is usually of a length: SQLite only notes it, and PostgreSQL would refuse what is longer."""
    return String(length).with_variant(Text(), "postgresql")
