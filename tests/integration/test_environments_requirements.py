"""What may be asked for, and what is said when it cannot be had."""

import re
import sys
import venv
from pathlib import Path

import pytest

from pyexec.domain.errors import InvalidArgumentError
from tests.integration.engine import outcome_of
from tests.integration.environments import SEEN, SHOW, UvEngine, make_wheel, package_index

pytestmark = pytest.mark.needs_uv


@pytest.mark.case("B022")
async def test_what_the_installer_says_never_reaches_the_programs_streams(uv_engine: UvEngine) -> None:
    execution = await uv_engine.run("print('r')", dependencies=["idna==3.7"])

    assert (await uv_engine.stdout(execution), await uv_engine.stderr(execution)) == ("r\n", "")
    assert outcome_of(execution).stdout_bytes == 2
    assert uv_engine.prepared(execution)
    answer = await uv_engine.answer(execution)
    assert answer.packages == ("idna==3.7",)
    assert answer.python_version is not None
    assert answer.python_version.startswith("{}.{}.".format(*sys.version_info[:2]))


@pytest.mark.case("B035")
@pytest.mark.parametrize(
    ("dependencies", "named"),
    [
        (["no-such-pkg-zz9"], ["no-such-pkg-zz9"]),
        (["pytest==8.0.0", "pluggy<1"], ["pytest==8.0.0", "pluggy<1"]),
    ],
)
async def test_requirements_that_cannot_be_met_are_named_before_anything_runs(
    uv_engine: UvEngine, dependencies: list[str], named: list[str]
) -> None:
    reason = await uv_engine.failure(dependencies=dependencies)

    assert reason.startswith("The requirements cannot be met: Because ")
    for one in named:
        assert one in reason
    assert uv_engine.folders() == []


@pytest.mark.case("B035")
@pytest.mark.parametrize(
    ("dependencies", "named"),
    [
        (["pluggy==1.4.0", "pluggy==1.5.0"], ["pluggy", "'pluggy==1.4.0'", "'pluggy==1.5.0'"]),
        (["pluggy==1,>=1.2"], ["pluggy", "'pluggy==1,>=1.2'"]),
    ],
)
async def test_requirements_that_exclude_each_other_are_refused_at_once(
    uv_engine: UvEngine, dependencies: list[str], named: list[str]
) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        await uv_engine.submit("print('ran')", dependencies=dependencies)

    for one in named:
        assert one in refusal.value.message


@pytest.mark.exhaustive
async def test_a_yanked_version_is_installed_when_it_is_asked_for_and_the_result_says_so(uv_engine: UvEngine) -> None:
    execution = await uv_engine.run(SHOW, dependencies=["attrs==21.1.0"], args=["attrs"])

    assert await uv_engine.stdout(execution) == "attrs=21.1.0\n"
    (note,) = (await uv_engine.answer(execution)).notes
    assert "attrs==21.1.0" in note
    assert "yanked" in note
    again = await uv_engine.run(SHOW, dependencies=["attrs==21.1.0"], args=["attrs"])
    assert [*again.notes, *(await uv_engine.answer(again)).notes] == [note]


async def test_a_package_that_comes_as_source_only_is_built(uv_engine: UvEngine, tmp_path: Path) -> None:
    with package_index() as index:
        index.add_source("zzsource", "1.0", tmp_path)
        execution = await uv_engine.run(
            SHOW, dependencies=["zzsource"], args=["zzsource"], index_url=f"{index.url}/simple"
        )

    assert await uv_engine.stdout(execution) == "zzsource=1.0\n"
    assert (await uv_engine.answer(execution)).packages == ("zzsource==1.0",)


@pytest.mark.exhaustive
async def test_a_package_of_old_that_comes_as_source_only_is_built(uv_engine: UvEngine) -> None:
    execution = await uv_engine.run(SEEN, dependencies=["docopt==0.6.2"], args=["docopt"])

    assert await uv_engine.stdout(execution) == "docopt\n"
    assert (await uv_engine.answer(execution)).packages == ("docopt==0.6.2",)


async def test_extras_and_markers_count(uv_engine: UvEngine, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "lib", "1", {"lib.py": ""}, ["iniconfig ; extra == 'more'"])
    names = ["lib", "iniconfig", "six", "idna"]
    dependencies = [
        f"lib[more] @ file://{wheel}",
        "six; python_version >= '3.8'",
        "idna; sys_platform == 'win32'",
    ]

    assert await uv_engine.printed_by(SEEN, dependencies=dependencies, args=names) == "lib iniconfig six"


async def test_a_wheel_is_taken_from_a_url(uv_engine: UvEngine) -> None:
    with package_index("ann", "s3cret") as index:
        index.add("zzlib", "1.0")
        url = f"http://ann:s3cret@127.0.0.1:{index.port}/files/zzlib-1.0-py3-none-any.whl"
        execution = await uv_engine.run(SHOW, dependencies=[f"zzlib @ {url}"], args=["zzlib"])

    assert await uv_engine.stdout(execution) == "zzlib=1.0\n"
    assert (await uv_engine.answer(execution)).packages == (f"zzlib @ {url.replace('ann:s3cret@', '')}",)


async def test_constraints_hold_for_what_comes_along_and_install_nothing_by_themselves(uv_engine: UvEngine) -> None:
    execution = await uv_engine.run(
        SHOW + SEEN, dependencies=["iniconfig>=1"], constraints=["iniconfig<2", "six"], args=["iniconfig"]
    )

    assert (await uv_engine.answer(execution)).packages == ("iniconfig==1.1.1",)
    reason = await uv_engine.failure(dependencies=["iniconfig>=2"], constraints=["iniconfig<2"])
    assert "iniconfig<2" in reason


@pytest.mark.exhaustive
async def test_an_index_of_ones_own_is_used_in_place_of_the_usual_one(uv_engine: UvEngine) -> None:
    with package_index() as index:
        index.add("iniconfig", "77.0")
        url = f"{index.url}/simple"
        own = await uv_engine.run(SHOW, dependencies=["iniconfig"], index_url=url, args=["iniconfig"])
        reason = await uv_engine.failure(dependencies=["six"], index_url=url)
    usual = await uv_engine.run(SHOW, dependencies=["iniconfig"], args=["iniconfig"])

    assert await uv_engine.stdout(own) == "iniconfig=77.0\n"
    assert re.fullmatch(r"iniconfig=2\.[0-9.]+\n", await uv_engine.stdout(usual))
    assert "six was not found in the package registry" in reason


async def test_a_lock_of_an_environment_makes_the_same_one_elsewhere(uv_engine: UvEngine) -> None:
    execution = await uv_engine.run("", dependencies=["pluggy==1.5.0", "iniconfig"])
    digest = (await uv_engine.answer(execution)).digest
    assert digest is not None

    lock = await uv_engine.services.environments.lock(uv_engine.principal, digest)

    assert re.search(r"^pluggy==1\.5\.0 (?:\\\n +)?--hash=sha256:", lock.text, re.MULTILINE)
    pins = [line.split(" ")[0] for line in lock.text.splitlines() if "==" in line]
    again = await uv_engine.run("", dependencies=pins)
    assert (await uv_engine.answer(again)).digest == digest


async def test_the_environment_of_a_program_is_first_on_its_path(uv_engine: UvEngine) -> None:
    code = (
        "import shutil, subprocess, sys\n"
        "print(shutil.which('python') == sys.executable)\n"
        "print(subprocess.run(['python', '-c', 'import iniconfig; print(1)'], capture_output=True, text=True).stdout)\n"
    )

    for _ in range(2):  # When it is made, and when it is there.
        assert (await uv_engine.printed_by(code, dependencies=["iniconfig"])).split() == ["True", "1"]


@pytest.mark.exhaustive
async def test_packages_of_the_interpreter_are_seen_unless_the_script_names_its_own(uv_engine: UvEngine) -> None:
    home = uv_engine.directory / "venv"
    venv.create(home, with_pip=False)
    (site,) = home.glob("lib/python*/site-packages")
    (site / "only_here.py").touch()
    request = {"args": ["only_here"], "python_version": str(home / "bin/python")}

    assert await uv_engine.printed_by(SEEN, **request) == "only_here"
    assert await uv_engine.printed_by("# /// script\n# dependencies=[]\n# ///\n" + SEEN, **request) == ""
    assert await uv_engine.printed_by(SEEN, dependencies=["iniconfig"], **request) == ""
