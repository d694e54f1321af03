"""Alembic's migrations: the only place where tables are made or changed."""
