"""Every command, setting, tool and argument that the docs name exists, and the README names every tool."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from fastmcp.tools import Tool

from docs.generate import FOLDER
from pyexec.cli.main import root
from pyexec.domain.errors import PyexecError
from pyexec.settings import VARIABLES
from pyexec_idp.settings import PREFIX as IDP_PREFIX
from pyexec_idp.settings import VARIABLES as IDP_VARIABLES
from tests.docs.conftest import PAGES, ROOT, Page

README = next(page for page in PAGES if page.path == ROOT / "README.md")
SET_FOR_PROGRAMS = {"PYEXEC_EXECUTION_ID", "PYEXEC_INLINE", "PYEXEC_TOOLS"}
FOR_DEVELOPERS = {"PYEXEC_CI_NO_SKIPS"}
A_TOOL = re.compile(r"(?:run_script|get_job|list_running|kill_job|py_[a-z]+_)\w*")
A_COMMAND = re.compile(r"(?:^|\$\(|\| )pyexec (.+)$|[\s/]pyexec (serve.*)$")
A_CODE = re.compile(r"[a-z]+(?:_[a-z]+)+")


def test_every_setting_that_is_named_exists(page: Page) -> None:
    known = {variable.name for variable in (*VARIABLES, *IDP_VARIABLES)} | SET_FOR_PROGRAMS | FOR_DEVELOPERS
    known.add(IDP_PREFIX.rstrip("_"))
    assert set(re.findall(r"PYEXEC_[A-Z_]*[A-Z]", page.text)) <= known


async def test_every_tool_that_is_named_exists(page: Page, tools: dict[str, Tool]) -> None:
    named = {match[0] for words in page.words_of_code() for match in A_TOOL.finditer(words)}
    assert {name for name in named if name not in tools and name.removeprefix("py_") not in tools} == set()


async def test_the_readme_has_every_tool_in_its_table(tools: dict[str, Tool]) -> None:
    section = README.text.partition("## The tools")[2].partition("\n## ")[0]
    listed = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\|(.+?)\|", section, re.MULTILINE)))
    assert sorted(listed) == sorted(tools)


async def test_calls_in_examples_use_arguments_that_exist_and_give_those_that_are_needed(
    page: Page, tools: dict[str, Tool]
) -> None:
    for block in page.blocks("python"):
        for node in ast.walk(ast.parse(block)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            parameters = tools[node.func.id].parameters
            given = {keyword.arg for keyword in node.keywords}
            assert node.args == []
            assert given - parameters["properties"].keys() == set()
            assert set(parameters.get("required", [])) - given == set()


def _command_lines(page: Page) -> Iterator[list[str]]:
    lines = [line.strip() for block in page.blocks("sh") for line in block.splitlines()]
    for line in (*lines, *page.words_of_code()):
        command = A_COMMAND.search(line)
        if command:
            yield shlex.split((command[1] or command[2]).rstrip(")"))


def test_every_command_and_option_that_is_named_exists(page: Page) -> None:
    for words in _command_lines(page):
        command: click.Command = root
        context = click.Context(root, info_name="pyexec")
        while isinstance(command, click.Group) and words and not words[0].startswith("-"):
            below = command.get_command(context, words[0].partition("|")[0])
            assert below is not None, words
            context = click.Context(below, info_name=words[0], parent=context)
            command, words = below, words[1:]
        options = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
        takes_all = command.name in ("run", "profile")
        for number, word in enumerate(words):
            if takes_all and not word.startswith("-") and not words[max(0, number - 1)].startswith("-"):
                break  # The file: what follows is the program's.
            assert not word.startswith("-") or word in options | {"-h", "--help"}, words


def test_error_codes_that_the_readme_explains_exist() -> None:
    table = README.text.partition("## When something is wrong")[2]
    codes = {kind.code for kind in _below(PyexecError)}
    explained = {words for words in re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE) if A_CODE.fullmatch(words)}
    assert explained - codes == {"gap_bytes"}  # A result's field.


def _below(kind: type[PyexecError]) -> Iterator[type[PyexecError]]:
    for each in kind.__subclasses__():
        yield each
        yield from _below(each)


def test_numbers_in_the_readme_are_those_of_the_settings() -> None:
    defaults = {variable.name: variable.default for variable in VARIABLES}
    limits = README.text.partition("## Limits and settings")[2].partition("\n## ")[0]
    assert defaults["PYEXEC_CONCURRENT"] == "cores x 4"
    assert "four programs per core" in limits
    assert f"{defaults['PYEXEC_KEPT_OUTPUT_MB']} MB are kept on disk" in limits
    assert f"{int(defaults['PYEXEC_ANSWER_OUTPUT_BYTES']):,} bytes of output" in limits
    assert f"kept for {defaults['PYEXEC_RETENTION_DAYS']} days" in limits
    assert f"waits `wait_seconds` ({defaults['PYEXEC_WAIT_SECONDS']} unless" in README.text


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_the_readme_leads_to_every_page_of_the_reference(path: Path) -> None:
    assert f"(docs/reference/{path.name})" in README.text
