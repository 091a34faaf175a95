"""The same on PostgreSQL; and what migrations make is what the code thinks there is."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from pyexec_idp.domain.errors import StateUnusableError
from pyexec_idp.stores.database import Database
from pyexec_idp.stores.housekeeping import clean
from pyexec_idp.stores.schema import metadata
from tests.helpers.postgres import Postgres
from tests.idp.site import SCOPE, Pkce, Site, refused


def test_migrations_make_the_tables_that_the_code_thinks_there_are(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/idp.db")
    with database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    database.close()
    assert (tmp_path / "idp.db").stat().st_mode & 0o077 == 0


def test_a_database_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path}/idp.db")
    with database.writing() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    database.close()
    again = Database(f"sqlite:///{tmp_path}/idp.db")
    with pytest.raises(StateUnusableError, match="newer"), again.reading():
        pass
    again.close()


def address(postgres: Postgres) -> str:
    """The address of an empty schema, as the identity provider wants it."""
    return postgres.database().replace("postgresql:", "postgresql+psycopg:", 1)


@pytest.fixture
def site(postgres: Postgres, tmp_path: Path) -> Iterator[Site]:
    made = Site(tmp_path / "idp", PYEXEC_IDP_DATABASE_URL=address(postgres))
    yield made
    made.close()


def test_the_whole_flow_on_postgresql(site: Site) -> None:
    with site.parts.database.reading() as connection:
        assert compare_metadata(MigrationContext.configure(connection), metadata) == []
    tokens = site.tokens(scope=f"{SCOPE} openid")
    client_id = tokens["client_id"]
    assert site.userinfo(tokens["access_token"]).status_code == 200
    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: site.refresh(client_id, tokens["refresh_token"]), range(5)))
    assert [answer.status_code for answer in answers] == [200] * 5
    assert len({answer.json()["refresh_token"] for answer in answers}) == 1
    pkce = Pkce()
    code = site.code(client_id, pkce)
    with ThreadPoolExecutor(5) as pool:
        statuses = list(pool.map(lambda _: site.exchange(client_id, code, pkce).status_code, range(5)))
    assert sorted(statuses) == [200, 400, 400, 400, 400]
    site.clock.advance(60)
    refused(site.refresh(client_id, tokens["refresh_token"]), 400, "invalid_grant")
    site.clock.advance(60 * 86400)
    clean(site.parts.database, site.clock(), site.settings.lifetimes, site.settings.bounds)
    assert site.parts.grants.of(site.parts.people.named("ada").id) == []


def test_of_several_that_start_at_once_one_makes_the_tables(postgres: Postgres) -> None:
    url = address(postgres)
    databases = [Database(url) for _ in range(4)]

    def count(database: Database) -> int:
        with database.reading() as connection:
            found = connection.execute(text("SELECT count(*) FROM users")).scalar_one()
        database.close()
        return found

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, databases)) == [0] * 4
