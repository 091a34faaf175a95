import json
import os
from pathlib import Path

import pytest

from pyexec.environments.fingerprints import Fingerprint, fingerprint
from pyexec.environments.version_cache import VersionCache

PYTHON = Path("/usr/bin/python3")
MARK = Fingerprint(mtime_ns=7, size=42)


def test_a_version_is_remembered_for_the_next_server(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "interpreters.json"
    VersionCache(file).put(PYTHON, MARK, (3, 13, 2))
    assert VersionCache(file).get(PYTHON, MARK) == (3, 13, 2)
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_a_program_that_changed_is_asked_again(tmp_path: Path) -> None:
    cache = VersionCache(tmp_path / "interpreters.json")
    cache.put(PYTHON, MARK, (3, 13, 2))
    assert cache.get(PYTHON, Fingerprint(mtime_ns=8, size=42)) is None
    assert cache.get(PYTHON, Fingerprint(mtime_ns=7, size=43)) is None
    assert cache.get(Path("/usr/bin/python"), MARK) is None


def test_what_another_server_wrote_meanwhile_is_kept(tmp_path: Path) -> None:
    one, other = (VersionCache(tmp_path / "interpreters.json") for _ in range(2))
    assert one.get(PYTHON, MARK) is None
    other.put(PYTHON, MARK, (3, 13, 2))
    one.put(Path("/bin/python3"), MARK, (3, 11, 2))
    assert VersionCache(tmp_path / "interpreters.json").get(PYTHON, MARK) == (3, 13, 2)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"format": 2, "interpreters": {}}',
        '{"format": 1, "interpreters": 3}',
        '{"format": 1, "interpreters": {"/usr/bin/python3": {"mtime_ns": 7, "size": 42, "version": [3, 13]}}}',
        '{"format": 1, "interpreters": {"/usr/bin/python3": {"mtime_ns": 7, "size": 42, "version": "3.13.2"}}}',
        '{"format": 1, "interpreters": {"/usr/bin/python3": null}}',
    ],
    ids=["empty", "cut-off", "list", "deep", "newer", "number", "short", "text", "null"],
)
def test_a_damaged_file_is_as_good_as_none(tmp_path: Path, content: str) -> None:
    file = tmp_path / "interpreters.json"
    file.write_text(content, encoding="utf-8")
    cache = VersionCache(file)
    assert cache.get(PYTHON, MARK) is None
    cache.put(PYTHON, MARK, (3, 13, 2))
    assert json.loads(file.read_text(encoding="utf-8"))["interpreters"][str(PYTHON)]["version"] == [3, 13, 2]


def test_a_file_that_is_not_text_is_as_good_as_none(tmp_path: Path) -> None:
    file = tmp_path / "interpreters.json"
    file.write_bytes(b"\xff\xfe\x00")
    assert VersionCache(file).get(PYTHON, MARK) is None


def test_a_file_that_cannot_be_written_costs_nothing_but_time(tmp_path: Path) -> None:
    (tmp_path / "in-the-way").write_text("", encoding="utf-8")
    cache = VersionCache(tmp_path / "in-the-way" / "interpreters.json")
    cache.put(PYTHON, MARK, (3, 13, 2))
    assert cache.get(PYTHON, MARK) == (3, 13, 2)


def test_a_file_that_cannot_be_put_in_place_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "interpreters.json").mkdir()
    (tmp_path / "interpreters.json" / "full").mkdir()
    VersionCache(tmp_path / "interpreters.json").put(PYTHON, MARK, (3, 13, 2))
    assert os.listdir(tmp_path) == ["interpreters.json"]


def test_without_a_file_it_remembers_for_itself() -> None:
    cache = VersionCache(None)
    cache.put(PYTHON, MARK, (3, 13, 2))
    assert cache.get(PYTHON, MARK) == (3, 13, 2)


def test_a_fingerprint_is_that_of_the_program_behind_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real", tmp_path / "link"
    real.write_text("x", encoding="utf-8")
    link.symlink_to(real)
    assert fingerprint(link) == fingerprint(real) == Fingerprint(mtime_ns=real.stat().st_mtime_ns, size=1)
    assert fingerprint(tmp_path / "gone") is None
