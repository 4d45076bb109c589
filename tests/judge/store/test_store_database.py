"""What the two engines promise, and that migrations make what the models say."""

from __future__ import annotations

import threading

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, func, inspect, select, text
from sqlalchemy.exc import OperationalError

from judge.store import Base, Queue, Store, Submission
from judge.store.database import MIGRATIONS


def test_the_read_engine_cannot_write(store):
    with pytest.raises(OperationalError, match="readonly"), store.read() as session:
        session.execute(text("DELETE FROM submissions"))


def test_a_failed_write_leaves_nothing(store, submit):
    submit()

    def half() -> None:
        with store.write() as session:
            session.execute(text("DELETE FROM submissions"))
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        half()
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(Submission)) == 1


@pytest.mark.parametrize(
    ("pragma", "value"),
    [("journal_mode", "wal"), ("synchronous", 1), ("busy_timeout", 5000), ("foreign_keys", 1)],
)
def test_sqlite_is_set_up(store, pragma, value):
    for scope in (store.read, store.write):
        with scope() as session:
            assert session.execute(text(f"PRAGMA {pragma}")).scalar() == value


def test_transactions_that_read_then_write_do_not_fail_together(store, submit):
    """A deferred transaction would: its read state is old once another has written."""
    number, errors = submit(), []

    def bump() -> None:
        try:
            for _ in range(40):
                with store.write() as session:
                    found = session.get(Submission, number)
                    found.crashes = found.crashes + 1
        except OperationalError as error:
            errors.append(error)

    threads = [threading.Thread(target=bump) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with store.read() as session:
        assert session.get(Submission, number).crashes == 160


def test_migrations_make_what_the_models_say(store, tmp_path):
    import web.app  # noqa: F401  the site's tables stand in the same metadata and history

    engine = create_engine(store.url)
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []


def test_migrating_again_keeps_the_data(store, submit):
    number = submit()
    again = Store(store.url)
    again.migrate()
    with again.read() as session:
        assert session.get(Submission, number) is not None
    again.close()


def test_migrations_can_be_undone(store):
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = create_engine(store.url)
    command.downgrade(config, "base")
    assert inspect(config.attributes["engine"]).get_table_names() == ["alembic_version"]


def test_a_number_is_given_once(store, submit):
    numbers = [submit() for _ in range(3)]
    with store.write() as session:
        session.execute(text("DELETE FROM submissions WHERE id >= 2"))
    assert submit() == numbers[-1] + 1


def test_numbers_are_given_once_from_an_old_database_on(tmp_path):
    """What it holds stays as it was: rows, the verdicts that point to them, indices, keys."""
    url = f"sqlite:///{tmp_path / 'old.db'}"
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = engine = create_engine(url)
    command.upgrade(config, "0013")
    columns = "id, user, problem, version, source, public_only, seed, status, created_at, attempt, child_started, crashes"
    with engine.begin() as connection:
        for number in (4, 9):
            connection.execute(
                text(
                    f"INSERT INTO submissions ({columns}) VALUES ({number}, 'u1', 200, 'v', x'7800ff', 0,"
                    f" x'0{number}', 'accepted', 1234.5, 1, 0, 0)"
                )
            )
            connection.execute(
                text(
                    "INSERT INTO judgements (id, submission, attempt, status, passed, total, tier, verdict, created_at,"
                    f" waited_s, judged_s) VALUES ({number + 100}, {number}, 1, 'accepted', 1, 1, 's', '{{}}', 1, 0, 0)"
                )
            )
        connection.execute(text("UPDATE submissions SET current_judgement = id + 100"))
        before = connection.execute(text("SELECT * FROM submissions ORDER BY id")).mappings().all()
    indices = {i["name"] for i in inspect(engine).get_indexes("submissions")}
    keys = inspect(engine).get_foreign_keys("submissions"), inspect(engine).get_foreign_keys("judgements")
    engine.dispose()
    store = Store(url)
    store.migrate()
    with store.read() as session:
        after = session.execute(text("SELECT * FROM submissions ORDER BY id")).mappings().all()
        assert after == before
        assert session.execute(text("PRAGMA foreign_key_check")).all() == []
        assert len(session.execute(text("SELECT * FROM judgements")).all()) == 2
    with store.write() as session:
        session.execute(text("DELETE FROM submissions WHERE id = 9"))
        assert session.execute(text("SELECT id FROM judgements")).scalars().all() == [104], "they go with it"
    queue = Queue(store)
    assert queue.submit(user="u2", problem=200, version="v", source=b"x") == 10
    engine = create_engine(url)
    assert {i["name"] for i in inspect(engine).get_indexes("submissions")} == indices
    assert (
        inspect(engine).get_foreign_keys("submissions"),
        inspect(engine).get_foreign_keys("judgements"),
    ) == keys
    engine.dispose()
    store.close()


def test_a_site_of_the_first_days_keeps_its_submissions(tmp_path):
    """The oldest schema with a row in it, brought to the newest."""
    url = f"sqlite:///{tmp_path / 'old.db'}"
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    config.attributes["engine"] = create_engine(url)
    command.upgrade(config, "0001")
    with config.attributes["engine"].begin() as connection:
        connection.execute(
            text(
                "INSERT INTO submissions (user, problem, version, source, public_only, seed, status, created_at, attempt,"
                " child_started, crashes) VALUES ('local', 200, 'v', x'78', 0, x'00', 'queued', 1234.5, 0, 0, 0)"
            )
        )
    store = Store(url)
    store.migrate()
    with store.read() as session:
        row = session.get_one(Submission, 1)
        assert (row.created_at, row.queued_at, row.priority, row.charged_s) == (1234.5, 1234.5, 0, 0.0)
    claim = Queue(store).claim("w")
    assert claim is not None
    assert claim.source == b"x"
    store.close()
