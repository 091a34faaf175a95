import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import MetaData, UniqueConstraint, create_engine, select

from pyexec.domain.errors import StateVersionError
from pyexec.storage import migrate, schema
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.schema import SCHEMA_VERSION
from tests.helpers.databases import Place
from tests.helpers.records import OWNER, execution


@pytest.fixture
def made(fresh_place: Place) -> Place:
    """A place whose database has been made."""
    database = fresh_place.open()
    database.require()
    database.close()
    return fresh_place


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
        if table.name in schema.metadata.tables
    }


def reflected(place: Place, name: str = "pyexec.db") -> dict[str, object]:
    address = f"sqlite:///{place.root / name}" if place.address is None else _for_sqlalchemy(place.address)
    engine = create_engine(address)
    metadata = MetaData()
    metadata.reflect(engine)
    engine.dispose()
    return shape(metadata)


def _for_sqlalchemy(address: str) -> str:
    return address.replace("postgresql:", "postgresql+psycopg:", 1)


def wanted(place: Place) -> dict[str, object]:
    """What the code thinks there is."""
    if place.server is None:
        beside = Place(place.root / "beside")
        beside.root.mkdir()
        address = f"sqlite:///{beside.root / 'pyexec.db'}"
    else:
        beside = Place(place.root, place.server, place.server.database())
        address = _for_sqlalchemy(str(beside.address))
    engine = create_engine(address)
    schema.metadata.create_all(engine)
    engine.dispose()
    return reflected(beside)


def test_the_migrations_make_exactly_the_tables_that_the_code_knows(made: Place) -> None:
    assert reflected(made) == wanted(made)
    assert "executions" in reflected(made)


def test_the_first_use_makes_a_database_of_this_version(made: Place) -> None:
    assert made.version() == SCHEMA_VERSION


def test_a_file_is_for_its_owner_only_and_lets_readers_and_a_writer_work_side_by_side(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.open().require()

    assert place.query("PRAGMA journal_mode") == [("wal",)]
    assert (tmp_path / "pyexec.db").stat().st_mode & 0o077 == 0


def test_a_database_that_is_up_to_date_is_not_migrated_again(made: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> None:
        raise AssertionError("migrated again")

    monkeypatch.setattr(migrate, "upgrade", refuse)
    made.open().require()


def test_a_migration_that_fails_leaves_nothing_and_is_tried_again(
    fresh_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgrade = migrate.upgrade

    def fail_at_the_end(*arguments: object) -> None:
        upgrade(*arguments)  # pyright: ignore[reportArgumentType]
        raise RuntimeError("the machine went down")

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "upgrade", fail_at_the_end)
        with pytest.raises(RuntimeError):
            fresh_place.open().require()

    assert reflected(fresh_place) == {}
    with fresh_place.open().reading() as connection:
        assert connection.execute(select(schema.executions)).all() == []


def test_servers_that_start_together_migrate_once(fresh_place: Place) -> None:
    url = fresh_place.address
    code = (
        "import sys; from pathlib import Path; from pyexec.domain.databases import DatabaseAddress\n"
        "from pyexec.storage.opening import database_of; from pyexec.storage.state_folder import StateFolder\n"
        "sys.stdin.read()\n"
        f"address = {None if url is None else f'DatabaseAddress({url!r})'}\n"
        f"database_of(StateFolder(Path({str(fresh_place.root)!r})), address).require()"
    )
    servers = [subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE) for _ in range(3)]
    for server in servers:
        assert server.stdin is not None
        server.stdin.close()

    assert [server.wait(120) for server in servers] == [0, 0, 0]
    assert fresh_place.version() == SCHEMA_VERSION


def test_a_database_of_a_newer_version_is_refused_and_left_alone(made: Place) -> None:
    made.set_version(SCHEMA_VERSION + 1)

    with pytest.raises(StateVersionError) as refusal, made.open().writing():
        pass

    assert f"schema {SCHEMA_VERSION + 1}" in refusal.value.message
    assert "PYEXEC_HOME" in refusal.value.sentence()
    assert made.version() == SCHEMA_VERSION + 1


def test_a_server_beside_a_newer_one_that_migrates_refuses_from_then_on(made: Place) -> None:
    store = ExecutionStore(made.open())
    store.add(execution(1))
    made.set_version(SCHEMA_VERSION + 1)

    with pytest.raises(StateVersionError):
        store.get(OWNER, execution(1).id)
    with pytest.raises(StateVersionError):
        store.add(execution(2))

    made.set_version(SCHEMA_VERSION)
    assert store.count(OWNER) == 1


def test_a_transaction_that_fails_changes_nothing(place: Place) -> None:
    store = ExecutionStore(place.open())
    store.add(execution(1))

    def delete_and_fail() -> None:
        with place.open().writing() as connection:
            connection.execute(schema.executions.delete())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        delete_and_fail()

    assert store.count(OWNER) == 1


def test_a_reader_does_not_wait_for_a_writer(place: Place) -> None:
    store = ExecutionStore(place.open())
    store.add(execution(1))

    with place.open().writing() as connection:
        connection.execute(schema.executions.delete())
        assert store.count(OWNER) == 1


def test_a_database_without_records_is_new_where_it_is_a_servers_and_without_a_file_where_it_is_one(
    fresh_place: Place,
) -> None:
    database = fresh_place.open()
    assert database.is_new()

    ExecutionStore(database).add(execution(1))

    assert not database.is_new()
