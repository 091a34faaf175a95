"""The same on PostgreSQL; and what migrations make is what the code thinks there is."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import text

from pyexec_idp.domain.errors import StateUnusableError
from pyexec_idp.stores.database import Database
from pyexec_idp.stores.housekeeping import clean
from pyexec_idp.stores.schema import metadata
from tests.idp.site import SCOPE, Pkce, Site, refused

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


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


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    """A server of its own, on a unix socket."""
    if not PROGRAMS:
        pytest.skip("needs PostgreSQL")
    folder = Path(tempfile.mkdtemp(prefix="pe-pg-", dir="/tmp"))
    user: dict[str, Any] = {}
    if os.geteuid() == 0:  # It does not run as root.
        shutil.chown(folder, "postgres", "postgres")
        user = {"user": "postgres", "group": "postgres", "extra_groups": []}

    def run(program: str, *words: str) -> None:
        subprocess.run([PROGRAMS[-1] / program, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL, **user)

    data = str(folder / "data")
    run("initdb", "-D", data, "-A", "trust", "-U", "idp", "--no-sync")
    run("pg_ctl", "-D", data, "-o", f"-F -k {folder} -c listen_addresses=", "-l", str(folder / "log"), "-w", "start")
    yield f"postgresql+psycopg://idp@/postgres?host={folder}"
    run("pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
    shutil.rmtree(folder)


@pytest.fixture
def site(postgres: str, tmp_path: Path) -> Iterator[Site]:
    fresh = Database(postgres)
    with fresh.writing() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    fresh.close()
    made = Site(tmp_path / "idp", PYEXEC_IDP_DATABASE_URL=postgres)
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


def test_of_several_that_start_at_once_one_makes_the_tables(postgres: str) -> None:
    databases = [Database(postgres) for _ in range(4)]
    with databases[0].writing() as connection:
        connection.execute(text("DROP SCHEMA public CASCADE"))
        connection.execute(text("CREATE SCHEMA public"))
    databases[0].close()

    def count(database: Database) -> int:
        with database.reading() as connection:
            found = connection.execute(text("SELECT count(*) FROM users")).scalar_one()
        database.close()
        return found

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, databases)) == [0] * 4
