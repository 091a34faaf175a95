"""Folders that are one file until somebody wants to look into them."""

import os
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pyexec.storage import packed
from pyexec.storage.output import log_bytes

FILES = {"lock": b"", "code/script.py": b"1 + 1", "stdout": b"\n\0[\xff"}


Pack = Callable[[Path, Mapping[str, bytes]], None]


@pytest.fixture(params=["made when it is needed", "kept ready"])
def pack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Pack]:
    packer = packed.Packer(tmp_path_factory.mktemp("ready"))

    def do(folder: Path, files: Mapping[str, bytes]) -> None:
        if request.param == "kept ready":
            packer.get_ready()
        packer.pack(folder, files)

    yield do
    packer.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_is_packed_comes_out_as_it_was(tmp_path: Path, pack: Pack) -> None:
    pack(tmp_path / "one", FILES)
    assert not (tmp_path / "one").exists()
    assert packed.is_there(tmp_path / "one")
    assert contents(packed.unpacked(tmp_path / "one")) == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["one"]
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "one" / "stdout").stat().st_mode & 0o777 == 0o600


def test_a_folder_that_is_not_packed_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    assert packed.unpacked(tmp_path / "one") == tmp_path / "one"
    assert packed.unpacked(tmp_path / "none") == tmp_path / "none"
    assert not packed.is_there(tmp_path / "none")


def test_several_who_look_at_once_see_the_same(tmp_path: Path, pack: Pack) -> None:
    for number in range(20):
        folder = tmp_path / str(number)
        pack(folder, FILES)
        with ThreadPoolExecutor(4) as pool:
            seen = list(pool.map(lambda folder: contents(packed.unpacked(folder)), [folder] * 4))
        assert seen == [FILES] * 4
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(map(str, range(20)))


def test_what_is_just_being_written_is_not_there_yet(tmp_path: Path) -> None:
    (tmp_path / "one.packed").write_bytes(b"")
    assert not packed.unpacked(tmp_path / "one").exists()
    assert (tmp_path / "one.packed").exists()


def test_packed_ones_count_among_the_folders_and_their_sizes(tmp_path: Path, pack: Pack) -> None:
    pack(tmp_path / "one", FILES)
    (tmp_path / "two").mkdir()
    assert sorted(packed.folders_in(tmp_path)) == [tmp_path / "one", tmp_path / "two"]
    assert log_bytes(tmp_path / "one") > sum(map(len, FILES.values()))
    assert packed.changed_at(tmp_path / "one") == (tmp_path / "one.packed").stat().st_mtime
    with pytest.raises(FileNotFoundError):
        packed.changed_at(tmp_path / "three")


def test_what_is_removed_is_gone_packed_or_not(tmp_path: Path, pack: Pack) -> None:
    pack(tmp_path / "one", FILES)
    pack(tmp_path / "two", FILES)
    packed.unpacked(tmp_path / "two")
    packed.remove(tmp_path / "one")
    packed.remove(tmp_path / "two")
    packed.remove(tmp_path / "three")
    assert list(tmp_path.iterdir()) == []


def test_what_is_there_is_not_written_over(tmp_path: Path, pack: Pack) -> None:
    pack(tmp_path / "one", FILES)
    with pytest.raises(FileExistsError):
        pack(tmp_path / "one", {})
    assert contents(packed.unpacked(tmp_path / "one")) == FILES


def test_what_is_cut_short_is_not_there_yet(tmp_path: Path, pack: Pack) -> None:
    pack(tmp_path / "one", FILES)
    path = tmp_path / "one.packed"
    path.write_bytes(path.read_bytes()[:-1])
    assert not packed.unpacked(tmp_path / "one").exists()
    assert packed.read(tmp_path / "one", "lock") is None
    path.write_bytes(b"no JSON\n")
    assert not packed.unpacked(tmp_path / "one").exists()


def test_one_file_is_read_without_unpacking(tmp_path: Path, pack: Pack) -> None:
    pack(tmp_path / "one", FILES)
    assert packed.read(tmp_path / "one", "code/script.py") == b"1 + 1"
    assert packed.read(tmp_path / "one", "stderr") is None
    assert packed.read(tmp_path / "two", "stdout") is None
    assert not (tmp_path / "one").exists()


def test_what_is_removed_while_others_look_does_not_come_back(tmp_path: Path, pack: Pack) -> None:
    for number in range(50):
        folder = tmp_path / str(number)
        pack(folder, FILES)
        with ThreadPoolExecutor(3) as pool:
            looking = [pool.submit(packed.unpacked, folder) for _ in range(2)]
            pool.submit(packed.remove, folder).result()
            for one in looking:
                one.result()
    assert list(tmp_path.iterdir()) == []


def test_one_that_was_unpacked_by_somebody_who_was_killed_then_is_only_tidied_up(tmp_path: Path, pack: Pack) -> None:
    pack(tmp_path / "one", FILES)
    saved = (tmp_path / "one.packed").read_bytes()
    packed.unpacked(tmp_path / "one")
    (tmp_path / "one.packed").write_bytes(saved)
    assert contents(packed.unpacked(tmp_path / "one")) == FILES
    assert [path.name for path in tmp_path.iterdir()] == ["one"]


def test_files_that_are_kept_ready_are_few_and_gone_with_their_keeper_or_its_successor(tmp_path: Path) -> None:
    packer = packed.Packer(tmp_path)
    for _ in range(2 * packed.MOST_READY):
        packer.get_ready()
    assert len(list(tmp_path.iterdir())) == packed.MOST_READY
    packer.close()
    assert list(tmp_path.iterdir()) == []
    packer.get_ready()
    packed.Packer(tmp_path).close()
    assert list(tmp_path.iterdir()) == []
    packer.close()


def test_one_that_was_kept_ready_and_removed_by_somebody_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "ready").mkdir()
    packer = packed.Packer(tmp_path / "ready")
    packer.get_ready()
    for file in (tmp_path / "ready").iterdir():
        file.unlink()
    packer.pack(tmp_path / "one", FILES)
    assert contents(packed.unpacked(tmp_path / "one")) == FILES


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no other disk")
def test_on_another_disk_it_is_made_there(tmp_path: Path) -> None:
    with TemporaryDirectory(dir="/dev/shm") as other:
        packer = packed.Packer(Path(other))
        packer.get_ready()
        packer.pack(tmp_path / "one", FILES)
        assert contents(packed.unpacked(tmp_path / "one")) == FILES
        assert os.listdir(other) == []
