"""Bringing a database to this version's shape."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

from pyexec_idp.domain.errors import StateUnusableError


def upgrade(connection: Connection) -> None:
    """Run every migration that is missing, in the caller's transaction.

    Raises:
        StateUnusableError: A newer version of us was here before.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")))
    config.attributes["connection"] = connection
    scripts = ScriptDirectory.from_config(config)
    found = MigrationContext.configure(connection).get_current_revision()
    known = [one.revision for one in scripts.walk_revisions()]
    if found is not None and found not in known:
        raise StateUnusableError(
            f"The database was migrated by a newer pyexec-idp (to {found}; this one knows {known[0]}).",
            hint="Upgrade this pyexec-idp.",
        )
    if found != scripts.get_current_head():
        command.upgrade(config, "head")
