from pathlib import Path

import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.environments.sources import Applied, Place, apply_settings

BASE = Path("/srv/app")


def apply(requirements: list[str], settings: dict[str, object], *, place: Place = "header") -> Applied:
    return apply_settings(requirements, settings, place=place, where="the script's header", base=BASE)


def test_without_settings_requirements_stay_as_they_are() -> None:
    assert apply(["rich", "./x"], {}) == Applied(requirements=("rich", "./x"))


@pytest.mark.parametrize(
    ("source", "requirement"),
    [
        ({"url": "https://x.org/lib.whl"}, "lib @ https://x.org/lib.whl"),
        ({"git": "https://x.org/lib"}, "lib @ git+https://x.org/lib"),
        ({"git": "https://x.org/lib", "tag": "v1"}, "lib @ git+https://x.org/lib@v1"),
        ({"git": "https://x.org/lib", "rev": "abc"}, "lib @ git+https://x.org/lib@abc"),
        (
            {"git": "ssh://git@x.org/lib", "branch": "main", "subdirectory": "py"},
            "lib @ git+ssh://git@x.org/lib@main#subdirectory=py",
        ),
        ({"path": "../my lib"}, "lib @ file:///srv/my%20lib"),
        ({"path": "/opt/lib", "editable": False}, "lib @ file:///opt/lib"),
        ({"path": "/opt/my lib", "editable": True}, "-e file:///opt/my%20lib"),
        ({"index": "torch"}, "lib>=1"),
    ],
)
def test_a_source_becomes_part_of_the_requirement(source: dict[str, object], requirement: str) -> None:
    assert apply(["lib>=1", "rich"], {"sources": {"Lib": source}}).requirements == (requirement, "rich")


def test_extras_and_markers_are_kept_and_a_url_of_ones_own_wins() -> None:
    sources: dict[str, object] = {"sources": {"lib": {"url": "https://x.org/lib.whl"}}}
    assert apply(
        ["lib[b,a]>1; python_version > '3'", "lib @ https://y.org/lib.whl", "./lib", "-e ./lib"], sources
    ).requirements == (
        'lib[a,b] @ https://x.org/lib.whl ; python_version > "3"',
        "lib @ https://y.org/lib.whl",
        "./lib",
        "-e ./lib",
    )


@pytest.mark.parametrize("source", [{"workspace": True}, [{"url": "https://x.org"}], {}, "x"])
def test_a_source_that_cannot_be_said_is_refused_rather_than_taken_from_the_index(source: object) -> None:
    with pytest.raises(InvalidArgumentError, match=r"\[tool\.uv\.sources\] lib in the script's header is of a kind"):
        apply(["lib"], {"sources": {"lib": source}})


def test_in_a_project_the_members_of_its_workspace_are_left_out_with_a_note() -> None:
    applied = apply(["lib", "rich"], {"sources": {"lib": {"workspace": True}}}, place="project")
    assert applied.requirements == ("rich",)
    assert applied.notes == (
        "lib is in the workspace of the script's header, which has no uv.lock, and was not installed.",
    )


def test_in_a_project_what_lies_beside_it_is_installed_from_there() -> None:
    sources: dict[str, object] = {"a": {"path": "../a"}, "b": {"path": "b", "editable": True}}
    applied = apply(["a[x]", "b"], {"sources": sources}, place="project")
    assert applied == Applied(requirements=("a[x] @ file:///srv/a", "-e file:///srv/app/b"))


def test_an_editable_source_keeps_extras_and_marker() -> None:
    source = {"path": "lib", "editable": True}
    assert apply(["lib[b,a]; python_version > '3'"], {"sources": {"lib": source}}).requirements == (
        '-e file:///srv/app/lib[a,b] ; python_version > "3"',
    )


def test_a_header_may_name_indexes_and_a_date() -> None:
    settings: dict[str, object] = {
        "index": [
            {"name": "torch-cpu", "url": "https://x.org/cpu", "explicit": True},
            {"url": "https://x.org/simple", "default": True},
            {"url": "../wheels"},
        ],
        "exclude-newer": "2026-01-01",
    }
    assert apply(["torch"], settings).options == (
        *("--index", "torch-cpu=https://x.org/cpu"),
        *("--default-index", "https://x.org/simple"),
        *("--index", "/srv/wheels"),
        *("--exclude-newer", "2026-01-01"),
    )


def test_of_a_projects_settings_only_what_uv_does_not_find_itself_is_handed_on() -> None:
    settings: dict[str, object] = {
        "index": [{"name": "a", "url": "https://x.org/a"}, {"name": "b", "url": "https://x.org/b", "explicit": True}],
        "exclude-newer": "2026-01-01",
        "package": False,
    }
    applied = apply(["rich"], settings, place="project")
    assert (applied.options, applied.notes) == (("--index", "b=https://x.org/b"), ())


def test_what_is_not_applied_is_noted() -> None:
    assert apply(["rich"], {"prerelease": "allow", "index": "x"}).notes == (
        "[tool.uv] prerelease in the script's header was not applied.",
    )


@pytest.mark.case("B190")
def test_credentials_never_reach_a_command_line() -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        apply(["rich"], {"index": [{"url": "https://user:SECRET@x.org/simple"}]})
    assert "SECRET" not in caught.value.sentence()


@pytest.mark.parametrize("index", [{}, {"url": ""}, {"url": "--help"}, {"url": 3}, "x"])
def test_an_index_without_a_url_is_refused(index: object) -> None:
    with pytest.raises(InvalidArgumentError, match="has no url"):
        apply(["rich"], {"index": [index]})
