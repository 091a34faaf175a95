"""What a turn has created or changed, when many turns follow each other."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from pyexec_guest import changes
from pyexec_guest.changes import Watch


def settle(*folders: Path) -> None:
    """Have folders be as if nothing had come or gone for long."""
    for folder in folders:
        os.utime(folder, ns=(1, 1))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file, and another folder with one."""
    (tmp_path / "below").mkdir()
    for name in ("a", "below/b"):
        (tmp_path / name).write_text("1")
    settle(tmp_path, tmp_path / "below")
    return tmp_path


@pytest.fixture
def watch(folder: Path) -> Watch:
    """One that has watched a turn."""
    watch = Watch(str(folder))
    watch.begin()
    assert watch.changes() == []
    return watch


def told(watch: Watch) -> list[tuple[str, str]]:
    return [(one.path, one.change) for one in watch.changes()]


def append(path: Path) -> None:
    path.write_text("more than before")


def replace(path: Path) -> None:
    path.with_name(".part").write_text("other")
    os.replace(path.with_name(".part"), path)


@pytest.mark.parametrize("name", ["a", "below/b", "new", "below/new"])
def test_what_is_put_there_between_two_turns_belongs_to_neither(folder: Path, watch: Watch, name: str) -> None:
    replace(folder / name)
    watch.begin()
    assert told(watch) == []


@pytest.mark.parametrize("change", [append, replace])
def test_what_a_turn_does_is_told_without_a_look_before_it(
    folder: Path, watch: Watch, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(changes.os, "scandir", None)
        watch.begin()
    for name in ("a", "below/b", "new", "below/new"):
        change(folder / name)
    assert told(watch) == [("a", "changed"), ("below/b", "changed"), ("below/new", "created"), ("new", "created")]


def test_a_folder_that_has_just_changed_is_looked_into_again(folder: Path, watch: Watch) -> None:
    watch.begin()
    (folder / "new").touch()
    times = folder.stat()
    assert told(watch) == [("new", "created")]
    (folder / "newer").touch()
    os.utime(folder, ns=(times.st_atime_ns, times.st_mtime_ns))  # As if the disk's clock had not gone on.
    watch.begin()
    assert told(watch) == []


def test_a_folder_that_is_gone_is_no_obstacle(folder: Path, watch: Watch) -> None:
    replace(folder / "below" / "b")
    os.rename(folder / "below", folder / "other")
    watch.begin()
    assert told(watch) == []
