"""What a script says about itself, the Python it runs on, and what must not get in the way."""

import sys

import pytest

from pyexec.domain.errors import InterpreterNotFoundError, InvalidArgumentError
from tests.integration.conftest import MakeUvEngine
from tests.integration.environments import SEEN, SHOW, UvEngine, listing, write

pytestmark = pytest.mark.needs_uv

VERSION = "import sys; print('%d.%d.%d' % sys.version_info[:3])\n"
MINOR = "{}.{}".format(*sys.version_info[:2])
EXACT = "{}.{}.{}".format(*sys.version_info[:3])
NEXT = f"{sys.version_info[0]}.{sys.version_info[1] + 1}"


@pytest.mark.case("B023")
@pytest.mark.case("B024")
@pytest.mark.parametrize(
    ("start", "end"),
    [
        pytest.param(b"", b"\n", id="plain"),
        pytest.param(b"\xef\xbb\xbf", b"\n", id="bom", marks=pytest.mark.exhaustive),
        pytest.param(b"", b"\r\n", id="crlf", marks=pytest.mark.exhaustive),
        pytest.param(b"\xef\xbb\xbf", b"\r\n", id="bom-crlf"),
    ],
)
async def test_packages_of_a_header_are_there_whatever_the_file_is_called(
    uv_engine: UvEngine, start: bytes, end: bytes
) -> None:
    lines = (
        b"# /// script",
        b'# dependencies = ["iniconfig==2.0.0"]',
        b"# ///",
        b"import iniconfig; print('ran')",
        b"",
    )
    write(uv_engine.directory, {"tool": start + end.join(lines)})
    before = listing(uv_engine.directory)

    execution = await uv_engine.run(script="tool")

    assert (await uv_engine.stdout(execution), await uv_engine.stderr(execution)) == ("ran\n", "")
    assert (await uv_engine.answer(execution)).packages == ("iniconfig==2.0.0",)
    assert listing(uv_engine.directory) == before


@pytest.mark.case("B027")
async def test_header_and_call_are_met_together(uv_engine: UvEngine) -> None:
    header = "# /// script\n# dependencies = ['pluggy<1.6']\n# ///\n"

    printed = await uv_engine.printed_by(
        header + SHOW, args=["pluggy", "iniconfig"], dependencies=["pluggy>=1.5", "iniconfig==2.0.0"]
    )

    assert printed == "pluggy=1.5.0 iniconfig=2.0.0"


@pytest.mark.case("B027")
async def test_header_and_call_that_exclude_each_other_are_both_shown(uv_engine: UvEngine) -> None:
    header = "# /// script\n# dependencies = ['pluggy==1.4.0']\n# ///\n"

    with pytest.raises(InvalidArgumentError) as refusal:
        await uv_engine.submit(header + SHOW, dependencies=["pluggy==1.5.0"])

    assert "'pluggy==1.4.0' in the script's header and 'pluggy==1.5.0' in dependencies" in refusal.value.message


@pytest.mark.case("B029")
async def test_nothing_around_the_script_changes_the_python_it_requires(
    make_uv_engine: MakeUvEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_PYTHON", "3.8")
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    engine = make_uv_engine()
    write(engine.directory, {".python-version": "3.8\n"})
    header = "# /// script\n# requires-python = '>=%s'\n# dependencies = ['iniconfig']\n# ///\n"

    printed = await engine.printed_by(header % "3.11" + VERSION)

    assert tuple(map(int, printed.split("."))) >= (3, 11)
    with pytest.raises(InterpreterNotFoundError) as refusal:
        await engine.submit(header % "3.99" + VERSION)
    assert "here are" in refusal.value.message


@pytest.mark.parametrize("form", [MINOR, EXACT, f">={MINOR},<{NEXT}", f"=={MINOR}.*", f"~={EXACT}", sys.executable])
async def test_a_version_of_python_may_be_asked_for_in_many_forms(uv_engine: UvEngine, form: str) -> None:
    printed = await uv_engine.printed_by(VERSION, python_version=form)

    assert printed.rpartition(".")[0] == MINOR


async def test_an_environment_is_made_for_the_python_that_is_asked_for(uv_engine: UvEngine) -> None:
    execution = await uv_engine.run(
        VERSION + SEEN, python_version=MINOR, dependencies=["iniconfig"], args=["iniconfig"]
    )

    version, seen = (await uv_engine.stdout(execution)).split()
    assert (version.rpartition(".")[0], seen) == (MINOR, "iniconfig")
    assert (await uv_engine.answer(execution)).python_version == version


async def test_when_nobody_asks_it_is_the_servers_version(uv_engine: UvEngine) -> None:
    printed = await uv_engine.printed_by(VERSION, dependencies=["iniconfig"])

    assert printed.rpartition(".")[0] == MINOR


async def test_a_python_that_cannot_be_had_is_said_with_those_that_are_here(
    make_uv_engine: MakeUvEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_PYTHON_DOWNLOADS", "never")
    engine = make_uv_engine()

    with pytest.raises(InterpreterNotFoundError) as refusal:
        await engine.submit(VERSION, python_version="3.99")

    assert refusal.value.message.startswith("No Python on this machine fits '3.99'; here are ")
    assert EXACT in refusal.value.message


async def test_a_python_that_uv_cannot_fetch_either_is_one_sentence(uv_engine: UvEngine) -> None:
    reason = await uv_engine.failure(python_version="3.49", dependencies=["iniconfig"])

    assert "3.49" in reason
    assert "\n" not in reason
    assert uv_engine.folders() == []


async def test_a_version_needs_uv(uv_engine: UvEngine) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        await uv_engine.submit(VERSION, python_version=MINOR, use_uv=False)

    assert (
        refusal.value.message == "python_version needs use_uv=true; without uv the script runs on the python3 on PATH."
    )


async def test_modules_beside_the_script_and_pythonpath_do_not_get_in_the_way_of_making(uv_engine: UvEngine) -> None:
    trap = "raise SystemExit('the wrong module')\n"
    names = ("platform.py", "typing.py", "json.py", "sitecustomize.py", "pyexec.py")
    write(uv_engine.directory / "traps", dict.fromkeys(names, trap))
    write(uv_engine.directory, {**dict.fromkeys(names[:3], trap), "main.py": "import six; print('ran')\n"})
    env_vars = {"PYTHONPATH": str(uv_engine.directory / "traps"), "PYTHONHOME": "/nowhere", "PYTHONSTARTUP": "/nowhere"}

    execution = await uv_engine.run(script="main.py", dependencies=["six"], env_vars=env_vars)

    # The program itself has what it was given, and fails of it; its environment was made all the same.
    assert (await uv_engine.answer(execution)).digest is not None
    assert uv_engine.complete() == [(await uv_engine.answer(execution)).digest]
    assert await uv_engine.printed_by("import six; print('ran')", dependencies=["six"], directory="/") == "ran"


async def test_a_script_gets_its_arguments_and_its_streams_and_exit_code_are_its_own(uv_engine: UvEngine) -> None:
    source = "import sys; print(sys.argv); print('mine', file=sys.stderr); sys.exit(7)\n"
    write(uv_engine.directory, {"main.py": source})

    execution = await uv_engine.run(script="main.py", args=["--help", "-c", "a b", "--"], dependencies=["iniconfig"])

    assert execution.outcome is not None
    assert execution.outcome.exit_code == 7
    assert (await uv_engine.stdout(execution)).endswith("main.py', '--help', '-c', 'a b', '--']\n")
    assert await uv_engine.stderr(execution) == "mine\n"


@pytest.mark.parametrize("use_uv", [True, False])
async def test_a_script_may_have_a_name_like_an_option(uv_engine: UvEngine, use_uv: bool) -> None:
    write(uv_engine.directory, {"-c": "print('ran')"})

    assert await uv_engine.printed_by(script="-c", use_uv=use_uv) == "ran"


async def test_the_date_in_a_header_counts(uv_engine: UvEngine) -> None:
    header = "# /// script\n# dependencies = ['pluggy']\n# [tool.uv]\n# exclude-newer = '2024-04-01'\n# ///\n"

    assert await uv_engine.printed_by(header + SHOW, args=["pluggy"]) == "pluggy=1.4.0"
