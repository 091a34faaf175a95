"""Modules, packages and archives run as Python itself runs them."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.helpers.commands import Command
from tests.helpers.mcp import Mcp

# All that a program can see of how it was started.
SHOW = """\
import json, sys
spec = __spec__ and [__spec__.name, type(__spec__.loader).__name__, __spec__.parent]
print(json.dumps([__name__, __package__, __file__, spec, sys.argv, sys.path[:1]]))
"""
USE_UV = pytest.mark.parametrize("use_uv", [False, pytest.param(True, marks=pytest.mark.needs_uv)])


def tree(folder: Path) -> Path:
    """Write a module, a package that can be started and one that cannot."""
    (folder / "package" / "sub").mkdir(parents=True)
    (folder / "package" / "__init__.py").write_text("NAME = 'package'\n")
    (folder / "package" / "sub" / "__init__.py").touch()
    for name in ("module", "package/__main__", "package/sub/inner"):
        (folder / f"{name}.py").write_text(SHOW)
    return folder


def by_python(folder: Path, *words: str) -> str:
    """Run Python itself there; return what it printed."""
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=True).stdout


@USE_UV
@pytest.mark.parametrize("module", ["module", "package", "package.sub.inner"])
async def test_a_module_sees_what_python_m_shows_it_in_that_directory(mcp: Mcp, module: str, use_uv: bool) -> None:
    folder = tree(mcp.directory)
    result = await mcp.get(
        "run_script_in_dir", directory=str(folder), module=module, args=["-x", "two words"], use_uv=use_uv
    )
    assert result["stdout"] == by_python(folder, "-m", module, "-x", "two words")
    job = await mcp.job(result["job_id"])
    assert (job["source"], job["kind"], job["directory"]) == (f"-m {module}", "script", str(folder))


@USE_UV
async def test_a_package_sees_what_python_shows_it(mcp: Mcp, use_uv: bool) -> None:
    folder = tree(mcp.directory)
    with zipfile.ZipFile(folder / "app.pyz", "w") as archive:
        archive.write(folder / "module.py", "__main__.py")
    for name in ("package", "app.pyz"):
        path = folder / name
        result = await mcp.get("run_script_in_dir", directory=str(folder), script_path=name, args=["a"], use_uv=use_uv)
        assert result["stdout"] == by_python(folder, str(path), "a")


@pytest.mark.needs_uv
async def test_a_module_runs_in_the_environment_of_the_project_it_lies_in(mcp: Mcp) -> None:
    folder = mcp.directory
    (folder / "pyproject.toml").write_text("[project]\nname = 'x'\nversion = '1'\ndependencies = ['six<1.17']\n")
    (folder / "show.py").write_text("import six; print(six.__name__)")
    arguments = {"directory": str(folder), "module": "show", "wait_seconds": 50}
    result = await mcp.get("run_script_in_dir", **arguments)
    assert (result["stdout"], [one[:6] for one in result["resolved_dependencies"]]) == ("six\n", ["six==1"])


@pytest.mark.needs_uv
async def test_a_module_may_come_from_the_packages_of_the_call(mcp: Mcp) -> None:
    arguments = {"module": "ruff", "dependencies": ["ruff"], "args": ["--version"], "wait_seconds": 50}
    result = await mcp.get("run_script_with_dependencies", **arguments)
    assert result["stdout"].startswith("ruff ")
    assert result["resolved_dependencies"] == [result["stdout"].strip().replace(" ", "==")]


@pytest.mark.needs_uv
async def test_the_header_of_a_packages_main_counts(mcp: Mcp) -> None:
    tree(mcp.directory)
    header = "# /// script\n# dependencies = ['six<1.17']\n# ///\n"
    (mcp.directory / "package" / "__main__.py").write_text(f"{header}import six; print(six.__name__)\n")
    arguments = {"directory": str(mcp.directory), "script_path": "package", "wait_seconds": 50}
    assert (await mcp.get("run_script_in_dir", **arguments))["stdout"] == "six\n"


@pytest.mark.parametrize(
    ("module", "error", "advice"),
    [
        ("gone", "No module named gone", "The module 'gone' is not there"),
        ("gone.more", "Error while finding module specification for 'gone.more'", "The module 'gone' is not there"),
        ("package.sub", "'package.sub' is a package and cannot be directly executed", "has no __main__.py"),
    ],
)
async def test_a_module_that_cannot_be_started_is_said_to_be_the_cause(
    mcp: Mcp, module: str, error: str, advice: str
) -> None:
    folder = tree(mcp.directory)
    arguments = {"directory": str(folder), "module": module, "use_uv": False, "env_vars": {"PYTHONNOUSERSITE": "1"}}
    answer = await mcp.call("run_script_in_dir", **arguments)
    assert (answer.is_error, answer.data["exit_code"]) == (True, 1)
    assert error in answer.data["error"]
    assert advice in answer.data["advice"]


def test_the_command_line_runs_modules_and_packages_too(run: Command) -> None:
    folder = tree(run.directory)
    ran = run("run", "--no-uv", "-m", "package.sub.inner", "-m", "--flag")
    assert ran.stdout == by_python(folder, "-m", "package.sub.inner", "-m", "--flag")
    assert run.ok("run", "--no-uv", "package", "a") == by_python(folder, str(folder / "package"), "a")
    ran = run("run", "--no-uv", "-m", "module", "-c", "1")
    assert ran.stdout == by_python(folder, "-m", "module", "-c", "1")
    assert "exclude each other" in run("run", "-c", "1", "-m", "module").stderr
