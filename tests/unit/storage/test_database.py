import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import MetaData, UniqueConstraint, create_engine, select

from pyexec.domain.errors import StateVersionError
from pyexec.storage import migrate, schema
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.schema import SCHEMA_VERSION
from pyexec.storage.sqlite import SqliteDatabase
from tests.helpers.records import OWNER, execution


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pyexec.db"


def pragma(path: Path, name: str) -> object:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]
    finally:
        connection.close()


def set_version(path: Path, version: int) -> None:
    connection = sqlite3.connect(path)
    try:
        connection.execute(f"PRAGMA user_version = {version}")
    finally:
        connection.close()


def shape(metadata: MetaData) -> dict[str, object]:
    return {
        table.name: {
            "columns": [
                (column.name, str(column.type), column.nullable, column.primary_key) for column in table.columns
            ],
            "indexes": {(index.name, tuple(index.columns.keys()), index.unique) for index in table.indexes},
            "unique": {
                tuple(sorted(constraint.columns.keys()))
                for constraint in table.constraints
                if isinstance(constraint, UniqueConstraint)
            },
        }
        for table in metadata.sorted_tables
        if table.name != "alembic_version"
    }


def reflected(path: Path) -> dict[str, object]:
    engine = create_engine(f"sqlite:///{path}")
    metadata = MetaData()
    metadata.reflect(engine)
    engine.dispose()
    return shape(metadata)


def test_the_migrations_make_exactly_the_tables_that_the_code_knows(path: Path, tmp_path: Path) -> None:
    with SqliteDatabase(path).reading():
        pass
    wanted = tmp_path / "wanted.db"
    engine = create_engine(f"sqlite:///{wanted}")
    schema.metadata.create_all(engine)
    engine.dispose()

    assert reflected(path) == reflected(wanted)
    assert "executions" in reflected(path)


def test_the_first_use_makes_a_database_of_this_version_for_its_owner_only(path: Path) -> None:
    with SqliteDatabase(path).reading():
        pass

    assert pragma(path, "user_version") == SCHEMA_VERSION
    assert pragma(path, "journal_mode") == "wal"
    assert path.stat().st_mode & 0o077 == 0


def test_a_database_that_is_up_to_date_is_not_migrated_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqliteDatabase(path).reading():
        pass

    def refuse(_connection: object) -> None:
        raise AssertionError("migrated again")

    monkeypatch.setattr(migrate, "upgrade", refuse)
    with SqliteDatabase(path).reading():
        pass


def test_a_migration_that_fails_leaves_nothing_and_is_tried_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade = migrate.upgrade

    def fail_at_the_end(connection: object) -> None:
        upgrade(connection)  # pyright: ignore[reportArgumentType]
        raise RuntimeError("the machine went down")

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "upgrade", fail_at_the_end)
        with pytest.raises(RuntimeError), SqliteDatabase(path).reading():
            pass

    assert pragma(path, "user_version") == 0
    assert reflected(path) == {}
    with SqliteDatabase(path).reading() as connection:
        assert connection.execute(select(schema.executions)).all() == []


def test_servers_that_start_together_migrate_once(path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from pyexec.storage.sqlite import SqliteDatabase\n"
        "sys.stdin.read()\n"
        f"with SqliteDatabase(Path({str(path)!r})).writing(): pass"
    )
    servers = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) for _ in range(3)]
    for server in servers:
        assert server.stdin is not None
        server.stdin.close()

    assert [server.wait(120) for server in servers] == [0, 0, 0]
    assert pragma(path, "user_version") == SCHEMA_VERSION


def test_a_state_folder_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    with SqliteDatabase(path).reading():
        pass
    set_version(path, SCHEMA_VERSION + 1)

    with pytest.raises(StateVersionError) as refusal, SqliteDatabase(path).writing():
        pass

    assert f"schema {SCHEMA_VERSION + 1}" in refusal.value.message
    assert "PYEXEC_HOME" in refusal.value.sentence()
    assert pragma(path, "user_version") == SCHEMA_VERSION + 1


def test_a_server_beside_a_newer_one_that_migrates_refuses_from_then_on(path: Path) -> None:
    store = ExecutionStore(SqliteDatabase(path))
    store.add(execution(1))
    set_version(path, SCHEMA_VERSION + 1)

    with pytest.raises(StateVersionError):
        store.get(OWNER, execution(1).id)
    with pytest.raises(StateVersionError):
        store.add(execution(2))

    set_version(path, SCHEMA_VERSION)
    assert store.count(OWNER) == 1


def test_a_transaction_that_fails_changes_nothing(path: Path) -> None:
    store = ExecutionStore(SqliteDatabase(path))
    store.add(execution(1))

    def delete_and_fail() -> None:
        with SqliteDatabase(path).writing() as connection:
            connection.execute(schema.executions.delete())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        delete_and_fail()

    assert store.count(OWNER) == 1


def test_a_reader_does_not_wait_for_a_writer(path: Path) -> None:
    store = ExecutionStore(SqliteDatabase(path))
    store.add(execution(1))

    with SqliteDatabase(path).writing() as connection:
        connection.execute(schema.executions.delete())
        assert store.count(OWNER) == 1
