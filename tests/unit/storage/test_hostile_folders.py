"""Folders that somebody else has filled: counted and removed, whatever is in them."""

import os
from pathlib import Path

from pyexec.storage.hostile_folders import DEEPEST, content, remove


def looked(folder: Path) -> tuple[int, int, bool]:
    fd = os.open(folder, os.O_PATH)
    try:
        found = content(fd)
    finally:
        os.close(fd)
    return found.size, found.files, found.deep


def test_what_is_in_a_folder_is_counted_once_and_no_link_is_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.write_bytes(bytes(1 << 20))
    folder = tmp_path / "folder"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "a").write_bytes(b"x" * (64 << 10))
    os.link(folder / "deep" / "a", folder / "again")
    (folder / "link").symlink_to(outside)
    (folder / "up").symlink_to(tmp_path)
    with open(folder / "sparse", "wb") as file:
        file.truncate(1 << 40)
    size, files, deep = looked(folder)
    assert 64 << 10 <= size < 128 << 10
    assert (files, deep) == (6, False)


def test_a_folder_is_removed_however_deep_it_is_and_nothing_behind_a_link(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    folder = tmp_path / "folder"
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    for _ in range(1100):
        os.symlink(outside, "link", dir_fd=here)
        os.mkdir("d", dir_fd=here)
        below = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)
    (folder / "closed").mkdir(mode=0)
    assert looked(folder)[2]
    assert looked(folder)[1] <= 2 * DEEPEST + 4
    remove(folder)
    assert not folder.exists()
    assert (outside / "kept").exists()
    remove(folder)
