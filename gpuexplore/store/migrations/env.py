"""Alembic's entry: runs the migrations on the connection that `gpuexplore.store.upgrade` opened."""

from alembic import context

from gpuexplore.store.tables import METADATA

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=METADATA, render_as_batch=connection.dialect.name == "sqlite")
with context.begin_transaction():
    context.run_migrations()
