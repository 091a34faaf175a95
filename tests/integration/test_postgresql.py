"""Records on a PostgreSQL server that goes away and comes back, and that several servers share."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyexec.app.diagnosis.checks import Check
from pyexec.app.diagnosis.state import check_state_folder
from pyexec.domain.errors import PyexecError, RecordsUnavailableError, StateUnusableError
from pyexec.settings import load_settings
from tests.helpers.databases import Place
from tests.helpers.homes import environment, temporary_home
from tests.helpers.postgres import ENCODED, PASSWORD, Postgres, postgres_server
from tests.helpers.processes import eventually
from tests.integration.engine import Engine, Server, server

MakeEngine = Callable[..., Engine]

UNTIL_GO = (
    "import os, time\nprint('begun', flush=True)\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('done')"
)


@pytest.fixture(scope="module")
def mortal() -> Iterator[Postgres]:
    """A server that these tests may kill."""
    with postgres_server() as server:
        yield server


@pytest.fixture
def place(mortal: Postgres, state_home: Path) -> Place:
    return Place(state_home, mortal, mortal.database())


async def refused(engine: Engine, code: str = "pass") -> PyexecError:
    with pytest.raises(PyexecError) as refusal:
        await engine.submit(code)
    return refusal.value


async def test_a_database_server_that_is_killed_in_the_middle_of_a_run_costs_nothing_of_it(
    mortal: Postgres, make_engine: MakeEngine, caplog: pytest.LogCaptureFixture
) -> None:
    engine, other = make_engine(), make_engine()
    waited_for, unseen = await engine.submit(UNTIL_GO), await other.submit(UNTIL_GO)
    engine.printed(waited_for)
    engine.printed(unseen)

    mortal.kill()

    try:
        for each in (engine, other):
            with pytest.raises(RecordsUnavailableError):
                await each.get(waited_for)
            refusal = await refused(each)
            assert (refusal.code, "nothing of it is lost" in refusal.sentence()) == ("records_unavailable", True)
        assert len(list((engine.home / "executions").iterdir())) == 2
        (engine.directory / "go").touch()
        # Whoever waits is told the end, which the folder knows.
        ended = await engine.executions.wait_for(waited_for, 100)
        assert ended.state == "completed"
        eventually((engine.folder(unseen) / "outcome.json").exists)
        engine.services.settler.settle(unseen)
    finally:
        mortal.start()

    for each in (engine, other):
        assert await each.get(waited_for) == ended
        assert (await each.get(unseen)).state == "completed"
        assert await each.stdout(unseen) == "begun\ndone\n"
    assert (await engine.run("print('again')")).state == "completed"
    found, total = await other.executions.newest(other.principal, states=["completed"], limit=9)
    assert (len(found), total) == (3, 3)
    assert PASSWORD not in caplog.text
    assert "does not answer" in caplog.text


@pytest.mark.exhaustive
async def test_a_database_server_that_is_restarted_between_two_calls_is_not_noticed(
    mortal: Postgres, make_engine: MakeEngine
) -> None:
    engine = make_engine()
    first = await engine.run("print(1)")

    mortal.stop()
    mortal.start()

    assert await engine.get(first) == first
    assert (await engine.run("print(2)")).state == "completed"


async def test_a_server_that_starts_before_its_database_is_ready_once_that_is_there(
    mortal: Postgres, make_engine: MakeEngine
) -> None:
    mortal.stop()
    try:
        with pytest.raises(RecordsUnavailableError):
            make_engine()
    finally:
        mortal.start()

    assert (await make_engine().run("print(1)")).state == "completed"


async def test_servers_that_start_at_once_on_an_empty_database_find_what_has_run_and_each_other(
    place: Place, state_home: Path
) -> None:
    with Engine(state_home) as before:  # On SQLite.
        kept = [await before.run("print('kept')", label="mine", request_id="r"), await before.run("1/0")]

    servers = [Server(state_home, **place.settings()) for _ in range(2)]
    try:
        for each in servers:
            each.tell(do="states")
        assert [each.answer() for each in servers] == [[[one.id, one.state] for one in reversed(kept)]] * 2
        for each in servers:
            each.tell(do="submit", code="print('once')", times=2, request_id="the same")
        (again,) = {execution_id for each in servers for execution_id in each.answer()}
        assert servers[0].ask(do="submit", code="print(1)", request_id="r") == [kept[0].id]
        assert servers[1].ask(do="wait", ids=[again]) == ["completed"]
        assert servers[0].ask(do="states") == [[again, "completed"], *([one.id, one.state] for one in reversed(kept))]
    finally:
        for each in servers:
            each.hang_up()
        for each in servers:
            each.close()
    assert place.query("SELECT count(*) FROM pyexec_state") == [(1,)]


@pytest.mark.exhaustive
async def test_servers_of_two_state_folders_do_not_share_a_database(place: Place, make_engine: MakeEngine) -> None:
    execution = await make_engine().run("print(1)")
    with temporary_home() as other:
        with pytest.raises(StateUnusableError, match="another state folder"):
            Engine(other, **place.settings())
        assert database_check(Place(other, place.server, place.address)).status == "fail"
    assert (await make_engine().get(execution)).state == "completed"


async def test_the_password_is_in_nothing_that_a_program_a_log_or_a_doctor_sees(
    place: Place, state_home: Path, mortal: Postgres
) -> None:
    (state_home.parent / "work").mkdir()
    with server(state_home, **place.settings()) as process:
        look = (
            "import os, pathlib\n"
            "print(dict(os.environ))\n"
            "for each in pathlib.Path('/proc').glob('[0-9]*/cmdline'):\n"
            "    try: print(each.read_bytes())\n"
            "    except OSError: pass\n"
            "print(pathlib.Path(f'/proc/{os.getppid()}/environ').read_bytes())\n"
            "print('looked')"
        )
        (execution_id,) = process.ask(do="submit", code=look)
        assert process.ask(do="wait", ids=[execution_id]) == ["completed"]
        folder = state_home / "executions" / execution_id
        assert "looked" in (folder / "stdout").read_text()
        mortal.kill()
        try:
            assert process.ask(do="submit", code="pass") == ["records_unavailable"]
        finally:
            mortal.start()
    check = database_check(place)
    wrong = database_check(Place(state_home, mortal, str(place.address).replace(ENCODED, f"{ENCODED}%21")))
    said = [json.dumps([str(one) for one in (check, wrong)]).encode()]
    said += [path.read_bytes() for path in state_home.rglob("*") if path.is_file()]
    for secret in (PASSWORD, ENCODED):
        assert not [text for text in said if secret.encode() in text]
    assert (check.status, f"PostgreSQL {mortal.version()} at postgresql://pyexec:***@" in check.message) == ("ok", True)
    assert (wrong.status, "password authentication failed" in wrong.message) == ("fail", True)


def database_check(place: Place) -> Check:
    settings = load_settings(environment(place.root, {"PYEXEC_DATABASE_URL": str(place.address)}))
    return next(check for check in check_state_folder(settings) if check.name == "database")
