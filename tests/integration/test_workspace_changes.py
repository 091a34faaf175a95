"""Which files of a workspace a turn has created, changed or deleted, seen from outside."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pyexec.mcp.views_files import changed_files
from pyexec.sessions import changes
from pyexec.sessions.changes import Changes, FileChange, Snapshot, compare, snapshot
from tests.end_to_end.session_files import ANN, Folders, Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Folders(tmp_path).make(ANN, "s")


@contextmanager
def looked(workspace: Workspace) -> Generator[list[Snapshot]]:
    """Take a look before and after what is done meanwhile."""
    fd = os.open(workspace.path, os.O_RDONLY)
    try:
        taken = [snapshot(fd)]
        yield taken
        taken.append(snapshot(fd))
    finally:
        os.close(fd)


def changed_by(workspace: Workspace, source: str) -> Changes:
    with looked(workspace) as taken:
        workspace.run(source)
    return between(taken)


def between(taken: list[Snapshot], most: int = 50) -> Changes:
    before, after = taken
    return compare(before, after, most)


def told(found: Changes) -> list[tuple[str, str, int]]:
    return [(one.path, one.change, one.size) for one in found.files]


def test_what_was_created_changed_and_deleted_is_told(workspace: Workspace) -> None:
    workspace.run("os.mkdir('d')\nfor n in 'abcde': open(f'd/{n}', 'w').write('old')")
    found = changed_by(
        workspace,
        "open('new', 'w').write('12345'); open('d/a', 'a').write('more'); os.unlink('d/b'); os.rename('d/c', 'moved')\n"
        "open('d/d', 'r+').write('OLD'); os.utime('d/d', ns=(os.stat('d/e').st_atime_ns, os.stat('d/e').st_mtime_ns))",
    )
    assert told(found) == [
        ("d/a", "changed", 7),
        ("d/b", "deleted", 0),
        ("d/c", "deleted", 0),
        ("d/d", "changed", 3),
        ("moved", "created", 3),
        ("new", "created", 5),
    ]
    assert told(changed_by(workspace, "open('d/e').read(); os.listdir('d')")) == []


def test_what_nobody_asked_for_is_left_out(workspace: Workspace) -> None:
    found = changed_by(
        workspace,
        "os.makedirs('__pycache__'); os.makedirs('.git'); os.makedirs('empty')\n"
        "for name in ('__pycache__/a.pyc', '.git/config', '.hidden', 'a.pyc'): open(name, 'w')\n"
        "os.symlink('/etc/passwd', 'link'); os.mkfifo('pipe')",
    )
    assert told(found) == []


def test_a_file_swapped_for_a_link_is_gone(workspace: Workspace) -> None:
    workspace.run("open('a', 'w').write('x')")
    found = changed_by(workspace, "os.unlink('a'); os.symlink('/etc/passwd', 'a')")
    assert told(found) == [("a", "deleted", 0)]


def test_odd_names_are_told_with_uris_that_reach_them(workspace: Workspace) -> None:
    found = changed_by(workspace, "open(b'x\\xe9', 'w'); open('a\\nb', 'w')")
    rows = changed_files("s", found)
    assert [(one.path, one.uri) for one in rows] == [
        ("a\nb", "workspace://s/a%0Ab"),
        ("x\\udce9", "workspace://s/x%E9"),
    ]
    (gone, _other) = changed_files("s", changed_by(workspace, "os.unlink('a\\nb'); os.unlink(b'x\\xe9')"))
    assert (gone.change, gone.uri) == ("deleted", None)


def test_many_changes_are_told_in_part_and_counted(workspace: Workspace) -> None:
    found = changed_by(workspace, "for n in range(200): open(f'{n:03}', 'w')")
    assert (len(found.files), found.files[-1].path, found.more) == (50, "049", 150)


def test_of_too_many_files_only_what_was_touched_is_told(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.run("for n in range(100): open(f'{n:03}', 'w'); os.utime(f'{n:03}', (1, 1))")
    monkeypatch.setattr(changes, "MOST_LOOKED_AT", 40)
    with looked(workspace) as taken:
        workspace.run("for n in range(100): open(f'{n:03}', 'a').write('x')\nfor n in range(100): os.unlink(f'{n:03}')")
        workspace.run("open('only', 'w')")
    assert (taken[0].complete, taken[1].complete) == (False, True)
    found = between(taken, 1000)
    assert FileChange(path="only", size=0, change="changed") in found.files
    assert all(one.change == "deleted" for one in found.files if one.path != "only")


def test_files_that_were_not_looked_at_before_are_not_taken_for_new_ones() -> None:
    before = Snapshot(marks={}, complete=False, taken_ns=10**18)
    old, touched = (1, 1, 1, 10**18 - 10**9), (2, 1, 1, 10**18 + 1)
    after = Snapshot(marks={"old": old, "touched": touched}, complete=False, taken_ns=10**18 + 10)
    assert told(compare(before, after)) == [("touched", "changed", 1)]
