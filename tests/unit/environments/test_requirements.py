import os
from pathlib import Path

import pytest

from pyexec.domain.errors import InvalidArgumentError, NotFoundError
from pyexec.environments.local import local_path
from pyexec.environments.requirements import anchored, combine, editable_of, is_local, unmet


@pytest.mark.case("B027")
def test_lists_that_agree_are_put_together_in_order() -> None:
    assert combine(["rich", "numpy>=2"], ["httpx[http2]", "numpy<3"]) == (
        "rich",
        "numpy>=2",
        "httpx[http2]",
        "numpy<3",
    )


def test_what_means_the_same_is_asked_for_once_as_first_written() -> None:
    header = ["Typing_Extensions >= 4, < 5", "pluggy"]
    assert combine(header, ["typing-extensions<5,>=4", " pluggy ", "pluggy"]) == tuple(header)


@pytest.mark.case("B027")
def test_two_pins_of_one_package_are_refused_with_both_shown() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        combine(["pluggy==1.4.0"], ["Pluggy==1.5.0"])
    assert caught.value.message == (
        "The requirements for pluggy exclude each other: 'pluggy==1.4.0' in the script's header and "
        "'Pluggy==1.5.0' in dependencies."
    )
    assert caught.value.details == {"package": "pluggy", "requirements": ["pluggy==1.4.0", "Pluggy==1.5.0"]}


@pytest.mark.case("B035")
@pytest.mark.parametrize(
    "asked",
    [
        ["pluggy==1.4.0", "pluggy==1.5.0"],
        ["pluggy==1,>=1.2"],
        ["pluggy>=1.2", "pluggy==1"],
        ["pluggy==1.*", "pluggy==2.0"],
        ["pluggy==1.4.0", "rich", "pluggy!=1.4"],
        ["pluggy @ https://example.org/a.whl", "pluggy @ https://example.org/b.whl"],
        ["pluggy==1; python_version >= '3'", "pluggy==2 ; python_version>='3'"],
    ],
)
def test_a_contradiction_in_one_list_names_the_package_and_each_requirement(asked: list[str]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        combine([], asked)
    assert "pluggy" in caught.value.message
    for one in asked:
        assert one == "rich" or repr(one) in caught.value.message


@pytest.mark.parametrize(
    "asked",
    [
        ["pluggy==1.5.0", "pluggy>=1,<2"],
        ["pluggy==1.5", "pluggy==1.5.0"],
        ["torch==2.6", "torch==2.6+cpu"],
        ["pluggy==1.6.0a1", "pluggy>=1"],
        ["pluggy==1; python_version < '3.9'", "pluggy==2; python_version >= '3.9'"],
        ["pluggy>2", "pluggy<1"],
        ["pluggy===weird", "pluggy>=1"],
        ["pluggy @ https://example.org/a.whl", "pluggy>=1"],
    ],
    ids=["inside", "same", "local", "pre-release", "markers", "no-pins", "arbitrary", "url"],
)
def test_what_only_the_index_or_the_python_can_decide_is_left_to_uv(asked: list[str]) -> None:
    assert combine([], asked) == tuple(asked)


@pytest.mark.parametrize(
    "bad", ["", "  ", "not a package!", "numpy>=", "ümlaut", "numpy # best", "https://x.org/a.whl"]
)
def test_what_is_no_requirement_is_refused_by_name(bad: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        combine(["rich"], ["pluggy", bad])
    assert caught.value.message.startswith(f"The requirement {bad!r} in dependencies cannot be read: ")


def test_a_url_without_a_name_is_refused_with_the_form_that_works() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        combine(["https://example.org/a.whl"], [])
    assert caught.value.hint == "Write 'name @ URL' to install from a URL."


@pytest.mark.parametrize("asked", ["-e ./x", "-e   ./x", "-e=./x", " --editable ./x ", "--editable=./x"])
def test_a_local_project_may_be_editable_and_is_written_in_one_way(asked: str) -> None:
    assert combine([asked], ["-e ./x", "./x"]) == ("-e ./x", "./x")


@pytest.mark.parametrize("bad", ["-e rich", "-e git+https://x.org/lib", "-e lib @ ./lib", "--editable=x"])
def test_only_a_path_may_be_editable(bad: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is editable, and not the path of a local project") as caught:
        combine([], [bad])
    assert caught.value.hint is not None


def test_an_editable_requirement_is_told_from_others() -> None:
    assert editable_of("-e ./x") == "./x"
    assert editable_of("./x") is None
    assert editable_of("rich") is None


@pytest.mark.parametrize(
    "bad", ["--index-url=https://evil.example", "-r /etc/passwd", "-", " --pre", "-rx", "-e", "-e.", "--editable-x ./x"]
)
def test_an_option_is_no_requirement(bad: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is an option for the installer, not a package"):
        combine([], [bad])


@pytest.mark.parametrize("bad", ["rich\n--index-url https://evil.example", "./x\n-e .", "rich\rpluggy", "rich\0"])
def test_a_requirement_is_one_line(bad: str) -> None:
    with pytest.raises(InvalidArgumentError, match="has a line break or control character"):
        combine([bad], [])


def test_the_message_calls_the_first_list_what_the_caller_calls_it() -> None:
    with pytest.raises(InvalidArgumentError, match=r"in /p/pyproject\.toml cannot be read"):
        combine(["?"], [], header_is="/p/pyproject.toml")


def test_the_message_calls_the_second_list_what_the_caller_calls_it() -> None:
    with pytest.raises(InvalidArgumentError, match=r"'a==1' in the script's header and 'a==2' in constraints\."):
        combine(["a==1"], ["a==2"], argument_is="constraints")


@pytest.mark.case("B037")
@pytest.mark.parametrize(
    "asked",
    [
        ["--index-url https://u:SECRET@x.org/simple"],
        ["-e git+https://SECRET@x.org/lib"],
        ["https://SECRET@x.org/lib.whl"],
        ["lib @ https://u:SEC@RET@x.org/lib.whl\n;"],
        ["lib @ https://u:SECRET@x.org/a.whl ; bad"],
        ["lib @ https://u:SECRET@x.org/a.whl", "lib @ https://u:SECRET@x.org/b.whl"],
        ["lib @ https://x.org/a.whl\nlib2 @ https://SECRET@x.org/b.whl"],
    ],
)
def test_credentials_in_what_is_refused_are_not_shown(asked: list[str]) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        combine([], asked)
    shown = f"{caught.value.sentence()} {caught.value.details}"
    assert "https://***@x.org" in shown
    assert "SEC" not in shown
    assert "RET" not in shown


@pytest.mark.parametrize("path", ["./x", "../x", "/x", ".", "..", "file:///x"])
def test_a_path_is_a_requirement(path: str) -> None:
    assert is_local(path)
    assert combine([path], [path]) == (path,)


def test_a_local_path_becomes_a_url_that_means_the_same_everywhere(tmp_path: Path) -> None:
    (tmp_path / "my lib").mkdir()
    (tmp_path / "lib").mkdir()
    url = f"file://{tmp_path}/my%20lib"
    assert anchored("./my lib", tmp_path) == url
    assert anchored("./my lib[fast,extra]", tmp_path) == f"{url}[fast,extra]"
    assert anchored(f"{tmp_path}/my lib", Path("/")) == url
    assert anchored("lib[x] @ ./lib ; python_version > '3'", tmp_path) == (
        f'lib[x] @ file://{tmp_path}/lib ; python_version > "3"'
    )
    assert anchored(".", tmp_path / "my lib") == url
    assert anchored(url, Path("/")) == url


@pytest.mark.parametrize("same", ["rich>=13", "lib @ https://example.org/lib.whl"])
def test_what_is_no_local_path_stays_as_it_is(tmp_path: Path, same: str) -> None:
    assert anchored(same, tmp_path) == same


@pytest.mark.parametrize("gone", ["./gone", "lib @ ./gone", "./gone[x]"])
def test_a_local_path_with_nothing_there_is_not_found(tmp_path: Path, gone: str) -> None:
    with pytest.raises(NotFoundError, match=f"nothing to install at {tmp_path}/gone"):
        anchored(gone, tmp_path)


def test_a_file_url_stays_as_it_is_with_a_name_and_without(tmp_path: Path) -> None:
    for same in ("file:///srv/lib[x]", "lib[x] @ file:///srv/lib", "lib @ file:///srv/lib ; python_version > '3'"):
        assert anchored(same, tmp_path) == same


def test_an_editable_path_becomes_a_url_too_and_has_to_be_a_project(tmp_path: Path) -> None:
    (tmp_path / "my lib").mkdir()
    (tmp_path / "lib.whl").touch()
    assert anchored("-e ./my lib[x]", tmp_path) == f"-e file://{tmp_path}/my%20lib[x]"
    assert anchored(f"-e file://{tmp_path}/my%20lib", Path("/")) == f"-e file://{tmp_path}/my%20lib"
    with pytest.raises(InvalidArgumentError, match=f"^{tmp_path}/lib.whl is not a project, so '-e ./lib.whl' cannot"):
        anchored("-e ./lib.whl", tmp_path)
    with pytest.raises(InvalidArgumentError, match=r"^file://\[x is not a project"):
        anchored("-e file://[x", tmp_path)


def test_a_folder_whose_name_is_no_text_becomes_a_url_that_leads_there(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"\xff")
    folder.mkdir()
    url = anchored(".", folder)
    assert url == f"file://{tmp_path}/%FF"
    assert local_path(url) == folder


PACKAGES = ("typing-extensions==4.12.0", "lib @ file:///srv/a==b", "torch==2.6.0+cpu", "beta==1.0b1")


@pytest.mark.parametrize(
    "asked",
    [
        "Typing_Extensions",
        "typing-extensions>=4,<5",
        "lib>=3",
        "lib @ https://x.org/lib.whl",
        "torch==2.6.0",
        "beta>=0.9",
        "gone; python_version < '3.13'",
        "gone; python_full_version < '3.13.2'",
        "gone; sys_platform == 'win32'",
    ],
)
def test_a_requirement_is_met_by_a_version_that_fits_and_by_a_url_of_that_name(asked: str) -> None:
    assert unmet([asked], PACKAGES, "3.13.2") == []


def test_what_is_missing_is_told_with_what_is_there_instead() -> None:
    asked = ["rich", "typing-extensions>=5", "./lib", "-e ./lib", "gone; python_version >= '3.13'"]
    assert unmet(asked, PACKAGES, "3.13.2") == [
        "'rich' (not there)",
        "'typing-extensions>=5' (there is 4.12.0)",
        "./lib (a local project)",
        "-e ./lib (a local project)",
        "\"gone; python_version >= '3.13'\" (not there)",
    ]


@pytest.mark.case("B037")
def test_a_url_with_a_password_that_is_not_encoded_is_refused_without_showing_it() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        combine((), ["lib @ https://user:pa/SECRET@host/lib.whl"])
    assert "SECRET" not in caught.value.sentence()
    assert "%2F" in caught.value.sentence()
