"""Settings of uv near a script: those that say where packages come from count, the others must not lead elsewhere."""

from pathlib import Path

import pytest

from tests.integration.environments import SHOW, UvEngine, listing, project

pytestmark = pytest.mark.needs_uv

VALUE = "import one; print(one.two.V)\n"


def settings(engine: UvEngine, text: str) -> None:
    (engine.directory / "pyproject.toml").write_text(f"[tool.uv.pip]\n{text}\n")


async def test_a_file_of_the_users_is_neither_read_nor_written_when_a_setting_names_it(uv_engine: UvEngine) -> None:
    settings(uv_engine, 'output-file = "requirements.txt"\npython-version = "3.8"\nuniversal = true')
    (uv_engine.directory / "requirements.txt").write_text("pluggy==1.0.0\n")
    before = listing(uv_engine.directory)

    printed = await uv_engine.printed_by(SHOW, dependencies=["pluggy<1.6"], args=["pluggy"])

    assert printed == "pluggy=1.5.0"
    assert listing(uv_engine.directory) == before


@pytest.mark.parametrize("setting", ['target = "vendored"', 'prefix = "p"', 'no-emit-package = ["pluggy"]'])
async def test_a_setting_that_leads_elsewhere_is_refused_and_nothing_is_made(uv_engine: UvEngine, setting: str) -> None:
    settings(uv_engine, setting)
    before = listing(uv_engine.directory)

    reason = await uv_engine.failure(dependencies=["pluggy<1.5"])

    name = setting.split(" ")[0]
    assert reason == (
        f"The setting pip.{name} in {uv_engine.directory}/pyproject.toml would have uv make another environment than "
        "was asked for."
    )
    assert listing(uv_engine.directory) == before


async def test_a_setting_by_which_the_same_version_comes_out_otherwise_makes_another_environment(
    uv_engine: UvEngine,
) -> None:
    usual = await uv_engine.answer(await uv_engine.run(SHOW, dependencies=["six==1.16.0"], args=["six"]))
    settings(uv_engine, 'no-build-package = ["zzz"]')
    other = await uv_engine.answer(await uv_engine.run(SHOW, dependencies=["six==1.16.0"], args=["six"]))

    assert usual.packages == other.packages == ("six==1.16.0",)
    assert usual.digest != other.digest


@pytest.mark.case("B031")
@pytest.mark.exhaustive
async def test_a_changed_package_is_seen_that_only_another_local_package_names(uv_engine: UvEngine) -> None:
    two = project(uv_engine.directory / "two", "two", modules={"two/__init__.py": "V = 1\n"})
    project(
        uv_engine.directory / "one",
        "one",
        ["two"],
        modules={"one/__init__.py": "import two\n"},
        more='[tool.uv.sources]\ntwo = { path = "../two" }\n',
    )

    first = await uv_engine.printed_by(VALUE, dependencies=["./one"])
    (two / "src/two/__init__.py").write_text("V = 22\n")

    assert (first, await uv_engine.printed_by(VALUE, dependencies=["./one"])) == ("1", "22")


async def test_a_local_package_of_a_lock_that_is_for_another_system_is_not_built(uv_engine: UvEngine) -> None:
    library: Path = project(uv_engine.directory / "library", "library", modules={"library/__init__.py": ""})
    (library / "pyproject.toml").write_text("no toml")
    lock = (
        "version = 1\nrevision = 3\nrequires-python = '>=3.8'\n"
        "[[package]]\nname = 'app'\nversion = '1'\nsource = { virtual = '.' }\n"
        "dependencies = [{ name = 'library', marker = \"sys_platform == 'win32'\" }]\n"
        "[package.metadata]\n"
        "requires-dist = [{ name = 'library', marker = \"sys_platform == 'win32'\", directory = 'library' }]\n"
        "[[package]]\nname = 'library'\nversion = '1'\nsource = { directory = 'library' }\n"
    )
    project(
        uv_engine.directory,
        "app",
        ["library ; sys_platform == 'win32'"],
        more='[tool.uv.sources]\nlibrary = { path = "library" }\n',
        backend=None,
    )
    (uv_engine.directory / "uv.lock").write_text(lock)
    (uv_engine.directory / "main.py").write_text("print('ran')\n")

    assert await uv_engine.printed_by(script="main.py") == "ran"
