from pathlib import Path

import pytest

from pyexec.domain.errors import InvalidArgumentError, NotFoundError
from pyexec.environments.requirements import anchored, combine, is_local, read_resolved


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


@pytest.mark.parametrize("bad", ["-e ./x", "-e.", "--editable ./x", "--editable=./x"])
def test_an_editable_install_is_refused_in_a_sentence(bad: str) -> None:
    with pytest.raises(InvalidArgumentError, match="is an editable install, which would write there"):
        combine([], [bad])


@pytest.mark.parametrize("bad", ["--index-url=https://evil.example", "-r /etc/passwd", "-", " --pre", "-rx"])
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


def test_a_resolved_list_is_read_without_options_comments_and_hashes() -> None:
    text = (
        "# made by uv\n--index-url https://index.example/simple\n\nlib @ file:///srv/lib\npluggy==1.5.0 \\\n"
        "    --hash=sha256:00 \\\n    --hash=sha256:01\nrich==15.0.0\n    # via -r requirements.in\n"
    )
    assert read_resolved(text) == ("lib @ file:///srv/lib", "pluggy==1.5.0", "rich==15.0.0")
