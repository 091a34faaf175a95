"""Alembic's entry: migrations run on the connection, and in the transaction, of whoever asks for them."""

from alembic import context

_given = context.config.attributes
context.configure(connection=_given["connection"], version_table=_given["version_table"])
context.run_migrations()
