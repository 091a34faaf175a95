import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.environments.names import NamedEnvironment, NameRegister, check_name

OWNER, OTHER = "local|1000|", "local|1001|"
TOOLS = NamedEnvironment(
    name="tools",
    digest="1" * 32,
    python="/usr/bin/python3",
    python_version="3.11.7",
    dependencies=("rich", "numpy>=2"),
    lock="rich==15.0.0\n",
    created_at=5.0,
)


@pytest.fixture
def names(tmp_path: Path) -> NameRegister:
    return NameRegister(tmp_path / "named")


def file_of(root: Path) -> Path:
    (file,) = (root / "named").glob("*/tools.json")
    return file


def test_a_name_leads_to_all_that_was_put_there(names: NameRegister, tmp_path: Path) -> None:
    assert names.get(OWNER, "tools") is None
    names.put(OWNER, TOOLS)
    assert NameRegister(tmp_path / "named").get(OWNER, "tools") == TOOLS
    assert file_of(tmp_path).parent.stat().st_mode & 0o777 == 0o700


def test_a_name_that_is_given_again_leads_to_the_new_environment(names: NameRegister) -> None:
    newer = replace(TOOLS, digest="2" * 32)
    for named in (TOOLS, newer):
        names.put(OWNER, named)
    assert names.get(OWNER, "tools") == newer
    assert names.digests() == {"2" * 32}


def test_names_are_listed_in_order(names: NameRegister) -> None:
    assert names.all_of(OWNER) == []
    for name in ("web.2", "a", "web-1", "web"):
        names.put(OWNER, replace(TOOLS, name=name))
    assert [named.name for named in names.all_of(OWNER)] == ["a", "web", "web-1", "web.2"]


def test_owners_do_not_see_each_others_names_but_all_of_them_count(names: NameRegister) -> None:
    names.put(OWNER, TOOLS)
    names.put(OTHER, replace(TOOLS, digest="2" * 32))
    for owner, digest in ((OWNER, "1" * 32), (OTHER, "2" * 32)):
        found = names.get(owner, "tools")
        assert found is not None
        assert found.digest == digest
        assert names.all_of(owner) == [found]
    names.remove(OTHER, "tools")
    assert names.all_of(OTHER) == []
    assert names.get(OWNER, "tools") == TOOLS
    assert names.digests() == {"1" * 32}


def test_the_folder_of_an_owner_does_not_lead_out_of_the_register(names: NameRegister, tmp_path: Path) -> None:
    names.put("../../etc|x|", TOOLS)
    assert file_of(tmp_path).parent.parent == tmp_path / "named"


def test_a_name_that_is_a_path_leads_nowhere(names: NameRegister, tmp_path: Path) -> None:
    names.put(OWNER, TOOLS)
    names.put(OTHER, TOOLS)
    for name in (f"../{file_of_owner.parent.name}/tools" for file_of_owner in (tmp_path / "named").glob("*/*.json")):
        assert names.get(OWNER, name) is None


def test_taking_a_name_back_twice_is_no_failure(names: NameRegister) -> None:
    names.put(OWNER, TOOLS)
    names.remove(OWNER, "tools")
    names.remove(OWNER, "tools")
    assert names.get(OWNER, "tools") is None


@pytest.mark.parametrize(
    "content",
    [
        "",
        '{"name": "tools"',
        "[]",
        "{}",
        json.dumps({**asdict(TOOLS), "more": 1}),
        json.dumps({name: value for name, value in asdict(TOOLS).items() if name != "lock"}),
        json.dumps({**asdict(TOOLS), "dependencies": 3}),
        json.dumps({**asdict(TOOLS), "dependencies": "rich"}),
    ],
    ids=["empty", "cut-off", "list", "bare", "newer", "without-lock", "number", "text"],
)
def test_a_damaged_file_is_as_good_as_none(names: NameRegister, tmp_path: Path, content: str) -> None:
    names.put(OWNER, TOOLS)
    file_of(tmp_path).write_text(content)
    assert names.get(OWNER, "tools") is None
    assert names.all_of(OWNER) == []
    assert names.digests() <= {TOOLS.digest}
    names.put(OWNER, TOOLS)
    assert names.get(OWNER, "tools") == TOOLS


@pytest.mark.parametrize("name", ["a", "7", "tools", "my-tools_2.1", "a" * 64, "a..b"])
def test_a_name_that_may_be_given(name: str) -> None:
    assert check_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", " ", "A", "-a", "a-", ".a", "a.", "_a", "a b", "a/b", "..", "../a", "a\n", "a\0b", "ü", "a" * 65, "x" * 5000],
)
def test_a_name_that_may_not_be_given_is_shown_with_what_may(name: str) -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"An environment cannot be called .*; allowed are up to 64"
    ) as caught:
        check_name(name)
    assert len(caught.value.message) < 400
