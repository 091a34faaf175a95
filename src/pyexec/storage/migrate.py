"""Bringing a database to this version's shape. Loaded only when there is something to do: Alembic is slow to import."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection


def upgrade(connection: Connection, version_table: str = "alembic_version") -> None:
    """Run every migration that is missing, in the caller's transaction.

    Alembic notes in a table of that name which have been run.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = version_table
    command.upgrade(config, "head")
