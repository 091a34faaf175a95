"""What is so on PostgreSQL only."""

import logging
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Connection, Engine, event, text

from pyexec.domain.databases import DatabaseAddress
from pyexec.domain.errors import PyexecError, RecordsUnavailableError, StateUnusableError
from pyexec.storage import postgresql
from pyexec.storage.executions import ExecutionStore
from pyexec.storage.identity import identity_of
from pyexec.storage.opening import database_of
from pyexec.storage.state_folder import StateFolder
from tests.helpers.databases import Place, place_of
from tests.helpers.postgres import ENCODED, PASSWORD, Postgres
from tests.helpers.records import OWNER, execution


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place_of("postgresql", request, tmp_path)


def other_folder(place: Place, folder: Path) -> Place:
    folder.mkdir()
    return Place(folder, place.server, place.address)


def refusal_at(address: str, folder: Path) -> PyexecError:
    with pytest.raises(PyexecError) as refusal:
        database_of(StateFolder(folder), DatabaseAddress(address)).require()
    return refusal.value


def test_records_of_another_state_folder_are_refused_and_left_alone(place: Place, tmp_path: Path) -> None:
    store = ExecutionStore(place.open())
    store.add(execution(1))
    other = other_folder(place, tmp_path / "other")

    with pytest.raises(StateUnusableError, match="another state folder") as refusal:
        ExecutionStore(other.open()).owners()

    assert "postgresql.md" in refusal.value.sentence()
    assert PASSWORD not in refusal.value.sentence()
    assert store.count(OWNER) == 1


def test_a_state_folder_that_was_moved_is_the_same(place: Place, tmp_path: Path) -> None:
    ExecutionStore(place.open()).add(execution(1))
    moved = other_folder(place, tmp_path / "moved")
    (place.root / "identity").rename(moved.root / "identity")

    assert ExecutionStore(moved.open()).count(OWNER) == 1


def test_a_state_folder_has_one_name_whoever_asks_first(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        names = set(pool.map(lambda _: identity_of(tmp_path), range(32)))

    assert len(names) == 1
    assert os.listdir(tmp_path) == ["identity"]
    assert (tmp_path / "identity").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", ["", "short\n", "ü" * 32, "../" * 12])
def test_a_name_that_is_none_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "identity").write_text(content)

    with pytest.raises(StateUnusableError, match="identity"):
        identity_of(tmp_path)


def test_a_server_that_cuts_its_connections_is_not_noticed_by_what_comes_next(place: Place) -> None:
    store = ExecutionStore(place.open())
    store.add(execution(1))
    assert place.server is not None
    others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'pyexec'"

    assert (True,) in place.server.execute(others)
    store.add(execution(2))
    assert (True,) in place.server.execute(others)

    assert store.count(OWNER) == 2


def test_a_statement_that_never_ends_is_ended_by_the_server(place: Place) -> None:
    with place.open().reading() as connection:
        limits = [
            connection.exec_driver_sql(f"SHOW {name}").scalar_one()
            for name in ("statement_timeout", "idle_in_transaction_session_timeout", "client_encoding")
        ]

    assert limits == ["20s", "20s", "UTF8"]


def test_a_connection_that_breaks_in_the_middle_undoes_what_was_begun(place: Place) -> None:
    database = place.open()
    store = ExecutionStore(database)
    store.add(execution(1))
    assert place.server is not None

    def break_in_the_middle() -> None:
        with database.writing() as connection:
            connection.execute(text("DELETE FROM executions"))
            pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            assert place.server is not None
            place.server.execute(f"SELECT pg_terminate_backend({pid})")

    with pytest.raises(RecordsUnavailableError):
        break_in_the_middle()

    assert store.count(OWNER) == 1


def test_a_server_that_says_nothing_is_not_waited_for_for_ever(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = ExecutionStore(place.open())
    store.add(execution(1))
    monkeypatch.setattr(postgresql, "ANSWER_SECONDS", 0.2)
    assert place.server is not None

    with place.server.silent(), pytest.raises(RecordsUnavailableError) as refusal:
        store.count(OWNER)

    assert refusal.value.code == "records_unavailable"
    monkeypatch.undo()
    assert store.count(OWNER) == 1
    said = [record.message for record in caplog.records if record.name == "pyexec.storage.postgresql"]
    assert ["does not answer" in said[0], "answers again" in said[-1]] == [True, True]


def test_more_than_all_connections_is_told_and_not_waited_for_for_ever(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgresql, "POOL", 1)
    monkeypatch.setattr(postgresql, "MOST_CONNECTIONS", 1)
    monkeypatch.setattr(postgresql, "POOL_SECONDS", 0.05)
    database = place.open()

    with database.reading(), pytest.raises(RecordsUnavailableError):
        database.require()

    database.require()


def test_what_a_wrong_password_or_server_leads_to_never_shows_the_password(
    postgres: Postgres, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wrong = "wr%2Fng-one"
    for address in (
        postgres.address(password=wrong),
        postgres.address().replace("/postgres?", "/no_such_database?"),
        f"postgresql://pyexec:{ENCODED}@127.0.0.1:1/records",
        f"postgresql://pyexec:{ENCODED}@no-such-host.invalid/records",
    ):
        caplog.clear()
        refusal = refusal_at(address, tmp_path)
        assert refusal.code == "records_unavailable"
        assert "does not answer: " in caplog.text
        seen = postgresql.look(StateFolder(tmp_path), DatabaseAddress(address))
        assert seen.trouble
        for shown in (refusal.sentence(), caplog.text, str(seen), str(refusal.__cause__)):
            for secret in (PASSWORD, ENCODED, "wr/ng-one", wrong):
                assert secret not in shown


def test_a_schema_that_is_not_there_or_may_not_be_written_is_told(postgres: Postgres, tmp_path: Path) -> None:
    missing = refusal_at(postgres.address("no_such_schema"), tmp_path)
    address = postgres.database()
    postgres.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    postgres.execute(f"GRANT USAGE ON SCHEMA {address.rpartition('%3D')[2]} TO guest")
    forbidden = refusal_at(address.replace(f"pyexec:{ENCODED}@", "guest:guest@"), tmp_path)

    for refusal in (missing, forbidden):
        assert (refusal.code, "must own" in refusal.sentence()) == ("state_unusable", True)
    assert "permission denied" in forbidden.message


def test_a_database_that_cannot_hold_every_text_is_refused(postgres: Postgres, tmp_path: Path) -> None:
    postgres.execute("CREATE DATABASE old TEMPLATE template0 ENCODING 'LATIN1'")

    refusal = refusal_at(postgres.address().replace("/postgres?", "/old?"), tmp_path)

    assert "LATIN1" in refusal.message
    assert "UTF8" in refusal.sentence()


def test_a_look_changes_nothing(postgres: Postgres, tmp_path: Path) -> None:
    address = postgres.database()

    seen = postgresql.look(StateFolder(tmp_path), DatabaseAddress(address))

    assert (seen.schema, seen.foreign, seen.trouble) == (None, False, None)
    assert postgres.execute("SELECT to_regclass('pyexec_state')", address) == [(None,)]
    assert os.listdir(tmp_path) == []


def test_other_programs_tables_in_the_same_schema_stay_as_they_are(postgres: Postgres, tmp_path: Path) -> None:
    address = postgres.database()
    postgres.execute("CREATE TABLE alembic_version (version_num text)", address)
    postgres.execute("INSERT INTO alembic_version VALUES ('theirs')", address)

    Place(tmp_path, postgres, address).open().require()

    assert postgres.execute("SELECT version_num FROM alembic_version", address) == [("theirs",)]


@pytest.mark.parametrize("owner", ["https://issuer.example|" + "%25" * 400 + "|", "o" * 900])
def test_texts_may_be_longer_than_usual(place: Place, owner: str) -> None:
    store = ExecutionStore(place.open())
    record = execution(1, owner=owner, python_version="3.13.1+" + "x" * 100, label="ü" * 200, request_id="☃" * 200)
    store.add(record)

    assert store.get(owner, record.id) == record


@pytest.mark.parametrize("strange", ["\0", "a\0b", "\ud800", "ü" * 32])
def test_an_id_that_cannot_be_one_is_not_there(place: Place, strange: str) -> None:
    store = ExecutionStore(place.open())
    store.add(execution(1))

    assert store.get(OWNER, strange) is None
    assert store.ids_like(OWNER, strange) == []


def test_all_is_logged_once_while_the_server_is_away(
    postgres: Postgres, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = database_of(StateFolder(tmp_path), DatabaseAddress(f"postgresql://u:{ENCODED}@127.0.0.1:1/records"))
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            with pytest.raises(RecordsUnavailableError):
                database.require()

    assert len([record for record in caplog.records if record.name == "pyexec.storage.postgresql"]) == 1


def test_a_server_that_is_not_reached_is_not_waited_for_again_by_each_caller(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # It takes connections, and says nothing.
        port = silent.getsockname()[1]
        address = DatabaseAddress(f"postgresql://ada:{ENCODED}@127.0.0.1:{port}/records?connect_timeout=2")
        database = database_of(StateFolder(tmp_path), address)
        told: list[str] = []
        for _ in range(3):
            with pytest.raises(RecordsUnavailableError) as refusal:
                database.require()
            told.append(refusal.value.sentence())
        silent.setblocking(False)
        silent.accept()[0].close()
        with pytest.raises(BlockingIOError):
            silent.accept()
    assert len(set(told)) == 1


def test_a_record_whose_keeping_was_not_confirmed_is_noted_once_and_nobody_hears_of_it(place: Place) -> None:
    store = ExecutionStore(place.open())
    store.add(execution(1))
    lost: list[str] = []

    def lose(connection: Connection, *said: Any) -> None:
        if said[1] == "COMMIT" and not lost:
            lost.append(said[1])
            connection.connection.dbapi_connection.close()  # pyright: ignore[reportOptionalMemberAccess]
            raise psycopg.OperationalError("server closed the connection unexpectedly")

    event.listen(Engine, "after_cursor_execute", lose)
    try:
        store.add(execution(2, request_id="r"))
    finally:
        event.remove(Engine, "after_cursor_execute", lose)
    assert lost
    assert store.count(OWNER) == 2
    found = store.by_request(OWNER, "r")
    assert found is not None
    assert found.id == execution(2).id
