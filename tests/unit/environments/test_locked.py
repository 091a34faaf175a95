from pathlib import Path

import pytest

from pyexec.environments.locked import LockedLine, read_lock, without_project

BASE = Path("/srv/app")
LOCK = """\
# made by somebody
--index-url https://x.org/simple

-e .
-e ./packages/one
./packages/two
lib @ file:///srv/my%20lib
pluggy==1.5.0 ; python_version < '3.13' \\
    --hash=sha256:00 \\
    --hash=sha256:01
    # via pytest
tool @ git+https://x.org/tool@0123abcd#subdirectory=py
"""


def line(text: str) -> LockedLine:
    return LockedLine(text=text, full=text)


def test_a_lock_is_read_without_options_comments_and_blank_lines() -> None:
    assert [one.text for one in read_lock(LOCK)] == [
        "-e .",
        "-e ./packages/one",
        "./packages/two",
        "lib @ file:///srv/my%20lib",
        "pluggy==1.5.0 ; python_version < '3.13'",
        "tool @ git+https://x.org/tool@0123abcd#subdirectory=py",
    ]
    assert read_lock("") == []


def test_a_line_keeps_its_hashes_beside_the_requirement_alone() -> None:
    pluggy = read_lock(LOCK)[4]
    assert pluggy.full == "pluggy==1.5.0 ; python_version < '3.13' --hash=sha256:00 --hash=sha256:01"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("lib @ file:///srv/lib", "lib"),
        ("tool @ git+https://x.org/tool@0123 ; x", "tool"),
        ("pluggy==1", None),
        ("-e .", None),
    ],
)
def test_a_line_with_a_url_says_its_name(text: str, name: str | None) -> None:
    assert line(text).name == name


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("-e .", "/srv/app"),
        (".", "/srv/app"),
        ("-e ./packages/one", "/srv/app/packages/one"),
        ("-e packages/one", "/srv/app/packages/one"),
        ("-e /opt/lib", "/opt/lib"),
        ("../lib", "/srv/lib"),
        ("./lib ; python_version < '3.13'", "/srv/app/lib"),
        ("/opt/my lib", "/opt/my lib"),
        ("lib @ file:///srv/my%20lib", "/srv/my lib"),
        ("lib @ file:///srv/lib ; python_version < '3.13'", "/srv/lib"),
        ("pluggy==1.5.0", None),
        ("tool @ https://x.org/tool.whl", None),
    ],
)
def test_a_local_package_says_where_it_lies(text: str, path: str | None) -> None:
    assert line(text).path(BASE) == (None if path is None else Path(path))


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("lib @ file:///srv/lib", "lib @ file:///tmp/a%20b.whl"),
        ("lib @ file:///srv/lib ; python_version < '3.13'", "lib @ file:///tmp/a%20b.whl ; python_version < '3.13'"),
        ("./lib ; python_version < '3.13'", "file:///tmp/a%20b.whl ; python_version < '3.13'"),
        ("../lib", "file:///tmp/a%20b.whl"),
    ],
)
def test_a_local_package_can_be_taken_from_elsewhere(text: str, moved: str) -> None:
    assert line(text).at(Path("/tmp/a b.whl")) == moved


def test_the_projects_own_folders_are_parted_from_what_is_installed() -> None:
    lines, own = without_project(read_lock(LOCK), BASE)
    assert own == [BASE, BASE / "packages/one"]
    assert [one.text.split()[0] for one in lines] == ["./packages/two", "lib", "pluggy==1.5.0", "tool"]
    assert not any(one.editable for one in lines)
