import errno
import json
import os
from pathlib import Path

import pytest

from pyexec_guest import log
from pyexec_guest.log import EventWriter, events


def test_entries_are_numbered_and_say_when_and_what(tmp_path: Path) -> None:
    writer = EventWriter(str(tmp_path))
    writer.note("status", 10.00049, status="running", pid=7)
    writer.note("status", 11.0, status="ended")
    writer.close()

    assert list(events(str(tmp_path))) == [
        {"n": 1, "t": 10.0, "k": "status", "status": "running", "pid": 7},
        {"n": 2, "t": 11.0, "k": "status", "status": "ended"},
    ]


def test_a_folder_without_a_log_has_no_entries(tmp_path: Path) -> None:
    assert list(events(str(tmp_path))) == []


def test_output_is_noted_when_the_stream_changes_and_now_and_then(tmp_path: Path) -> None:
    writer = EventWriter(str(tmp_path))
    for stream, at, now in [
        ("stdout", 0, 10.0),
        ("stdout", 5, 10.1),
        ("stderr", 0, 10.2),
        ("stdout", 9, 10.3),
        ("stdout", 12, 10.9),
        ("stdout", 20, 11.4),
    ]:
        writer.output(stream, at, now)
    writer.close()

    assert [(entry["k"], entry["at"]) for entry in events(str(tmp_path))] == [
        ("stdout", 0),
        ("stderr", 0),
        ("stdout", 9),
        ("stdout", 20),
    ]


def test_a_large_log_notes_output_now_and_then_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_EVENTS_BYTES", 2_000)
    writer = EventWriter(str(tmp_path))
    for number in range(10_000):
        writer.output(log.STREAMS[number % 2], number, 10.0 + number / 50)
    writer.close()

    assert (tmp_path / "events").stat().st_size < 3_000
    assert list(events(str(tmp_path)))[-1]["t"] > 130


def test_an_entry_that_was_cut_off_is_no_entry(tmp_path: Path) -> None:
    writer = EventWriter(str(tmp_path))
    writer.note("status", 10.0, status="running")
    writer.close()
    with open(tmp_path / "events", "ab") as file:
        file.write(b'{"n":2,"t":11.0,"k":"sta')

    assert [entry["n"] for entry in events(str(tmp_path))] == [1]


def test_a_full_disk_loses_an_entry_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = EventWriter(str(tmp_path))
    writer.note("status", 10.0, status="running")
    write_really = os.write

    def refuse(_fd: int, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", refuse)
    writer.note("status", 11.0, status="stopping")
    monkeypatch.setattr(os, "write", write_really)
    writer.note("status", 12.0, status="ended")
    writer.close()

    assert [entry["status"] for entry in events(str(tmp_path))] == ["running", "ended"]


def test_an_entry_torn_by_a_full_disk_does_not_hide_the_later_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = EventWriter(str(tmp_path))
    writer.note("status", 10.0, status="running")
    write_really = os.write

    def write_what_fits(fd: int, data: bytes) -> int:
        return write_really(fd, data[:11])

    monkeypatch.setattr(os, "write", write_what_fits)
    writer.note("status", 11.0, status="stopping")
    monkeypatch.setattr(os, "write", write_really)
    writer.note("status", 12.0, status="ended")
    writer.close()

    assert [entry["status"] for entry in events(str(tmp_path))] == ["running", "ended"]
    lines = (tmp_path / "events").read_bytes().splitlines()
    assert json.loads(lines[-1])["status"] == "ended"
