"""Runs migrations on the engine that `Store.migrate` hands over. Batch mode: SQLite can change a table only
by copying it, so foreign keys are off while that happens."""

from alembic import context

from judge.store.tables import Base

engine = context.config.attributes["engine"]
is_sqlite = engine.dialect.name == "sqlite"

with engine.connect() as connection:
    if is_sqlite:
        connection.connection.driver_connection.execute("PRAGMA foreign_keys=OFF")
    context.configure(connection=connection, target_metadata=Base.metadata, render_as_batch=True)
    with connection.begin(), context.begin_transaction():
        context.run_migrations()
    if is_sqlite:
        connection.connection.driver_connection.execute("PRAGMA foreign_keys=ON")
