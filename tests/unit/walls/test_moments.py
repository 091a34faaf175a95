"""Turns that are over before anything of them is written."""

import json
import os
import socket
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pyexec.sandbox.claims import LOCK, claim
from pyexec.sandbox.turns import read_turn
from pyexec.storage.packed import Packer, unpacked
from pyexec.walls.bubblewrap.beginning import Begun, begin
from pyexec.walls.bubblewrap.moments import ends_in_a_moment, note_end
from pyexec.walls.bubblewrap.stays import House
from pyexec_guest import protocol
from pyexec_guest.keeper.turn import hold_place, take_place
from tests.unit.walls.stays import GuestStay, house
from tests.unit.walls.test_beginning import RECORD, is_free, orders, saying


@dataclass
class Scene:
    """A turn that has begun, and its server's end of the connection."""

    begun: Begun
    house: House
    stay: GuestStay
    line: Path
    keeper: socket.socket
    server: socket.socket

    def ends(self) -> bool:
        return ends_in_a_moment(self.begun)

    def note(self) -> list[dict[str, Any]]:
        """Have it noted down; return what the server hears."""
        with saying(RECORD) as said:
            self.well = note_end(self.begun, self.house, self.keeper, said)
        return protocol.Decoder().feed(self.server.recv(2**20))


@pytest.fixture
def scene(tmp_path: Path) -> Generator[Scene]:
    (tmp_path / "keeper").mkdir()
    held = claim(tmp_path / "keeper", tmp_path / "elsewhere", "c" * 32)
    line = tmp_path / "line"
    (line / take_place(str(line), str(tmp_path / "keeper" / LOCK), "b" * 32)).unlink()
    stay = GuestStay()
    at_home = house(stay, Packer(tmp_path / "keeper"))
    begun = begin(orders(tmp_path, line), at_home, tmp_path / "keeper" / LOCK)
    assert begun is not None
    keeper, server = socket.socketpair()
    server.settimeout(10)
    with keeper, server:
        yield Scene(begun, at_home, stay, line, keeper, server)
    stay.end()
    held.release()


def test_one_that_ends_is_one_file_and_its_server_hears_all_of_it(scene: Scene) -> None:
    os.write(scene.stay.box.sandbox.stdout, b"printed \xff\n")
    scene.stay.done()
    assert scene.ends()
    ended, noted = scene.note()
    assert scene.well
    assert (ended["t"], noted) == ("ended", {"t": "noted", "again": True})
    assert (ended["outcome"]["kind"], ended["outcome"]["exit_code"]) == ("exited", 0)
    assert ended["stdout"].encode("latin-1") == b"printed \xff\n"
    assert [frame["t"] for frame in ended["frames"]] == ["turn", "done"]
    assert [path.name for path in scene.begun.folder.parent.glob("a*")] == [f"{'a' * 32}.packed"]
    assert scene.stay.left == [True]
    assert is_free(scene.line)


def test_unpacked_it_is_a_folder_like_any_other(scene: Scene) -> None:
    os.write(scene.stay.box.sandbox.stdout, b"printed\n")
    scene.stay.say(t="event", n=1, k="display", kind="html", data={"text/html": {"text": "<p>"}})
    scene.stay.done(2)
    assert scene.ends()
    scene.note()
    folder = unpacked(scene.begun.folder)
    names = {path.name for path in folder.iterdir()}
    assert names == {
        *("lock", "code", "execution.json", "events", "frames", "stdout", "stderr", "started.json", "outcome.json")
    }
    assert (folder / "stdout").read_bytes() == b"printed\n"
    assert (folder / "code" / "script.py").read_bytes() == b"1\xed\xa0\x80"
    assert json.loads((folder / "outcome.json").read_bytes())["stdout_bytes"] == 8
    kinds = [(entry["n"], entry["k"]) for entry in map(json.loads, (folder / "events").read_bytes().splitlines())]
    assert kinds == [(1, "status"), (2, "display"), (3, "stdout"), (4, "status")]
    turn = read_turn(folder)
    assert turn is not None
    assert (turn.value, turn.displays[0].stdout_at, turn.broken) == ("2", 8, None)
    assert not list(folder.parent.glob("*.packed"))


def test_one_that_takes_longer_goes_on(scene: Scene) -> None:
    assert not scene.ends()
    assert not is_free(scene.line)


def test_one_that_prints_much_goes_on_and_nothing_of_it_is_read_yet(scene: Scene) -> None:
    os.write(scene.stay.box.sandbox.stderr, b"x" * 20_000)
    scene.stay.done()
    assert not scene.ends()
    assert len(os.read(scene.stay.box.sandbox.output[1], 2**20)) == 20_000


def test_one_that_sends_a_file_goes_on(scene: Scene) -> None:
    scene.stay.say(t="event", n=1, k="file", name="a.csv", data="", last=True, size=0)
    scene.stay.done(2)
    assert not scene.ends()
    assert not scene.begun.link.ended


@pytest.mark.parametrize(
    "said", [{"t": "done", "n": 2}, {"t": "done", "n": 1, "turn": "another"}, {"t": "what"}, {"t": "event", "n": 1}]
)
def test_one_that_says_what_none_of_ours_says_goes_on_to_its_end(scene: Scene, said: dict[str, Any]) -> None:
    scene.stay.say(**said)
    assert not scene.ends()
    assert scene.begun.link.broken is not None


def test_one_whose_guest_goes_on_after_its_last_word_ends_its_session(scene: Scene) -> None:
    scene.stay.done()
    assert scene.ends()
    scene.stay.say(t="event", n=2, k="display")
    _ended, noted = scene.note()
    assert scene.stay.left == [False]
    assert noted["t"] == "noted"
    turn = read_turn(unpacked(scene.begun.folder))
    assert turn is not None
    assert turn.broken == "a frame after the terminal one"


def test_what_cannot_be_written_is_told_after_how_it_has_ended(scene: Scene) -> None:
    scene.begun.folder.with_name(f"{'a' * 32}.packed").touch()
    scene.stay.done()
    assert scene.ends()
    ended, failed = scene.note()
    assert ended["outcome"]["exit_code"] == 0
    assert failed == {"t": "failed", "why": "File exists"}
    assert is_free(scene.line)


def test_a_server_that_is_gone_hinders_nothing(scene: Scene) -> None:
    scene.stay.done()
    assert scene.ends()
    scene.server.close()
    with saying(RECORD) as said:
        assert not note_end(scene.begun, scene.house, scene.keeper, said)
    assert unpacked(scene.begun.folder).exists()
    place = hold_place(str(scene.line), 1)
    assert place is not None
    place.close()


def test_a_late_frame_of_no_turn_that_there_was_ends_its_sandbox(scene: Scene) -> None:
    scene.stay.say(t="late", turn=[])
    assert not scene.ends()
    assert scene.begun.link.broken == "a frame for another turn"


def test_a_flood_behind_the_last_word_has_an_end(scene: Scene) -> None:
    scene.stay.done()
    assert scene.ends()
    scene.stay.say(t="event", n=2, k="file", name="a", data="")
    _ended, noted = scene.note()
    assert scene.stay.left == [False]
    assert noted["t"] == "noted"


def test_a_flood_before_there_is_a_folder_has_an_end(scene: Scene) -> None:
    frame = protocol.encode({"t": "event", "n": 1, "k": "file", "turn": scene.stay.turns[-1]})
    scene.stay.guest.sendall(frame * 1200)
    while scene.stay.connection.is_open:
        assert not scene.ends()
        scene.stay.connection.read()
    assert scene.begun.link.broken == "more frames at once than a guest of ours sends"


def test_what_is_given_up_leaves_nothing_behind_and_can_be_given_up_again(scene: Scene) -> None:
    scene.begun.give_up(scene.house)
    scene.begun.give_up(scene.house)
    assert scene.stay.left == [False]
    assert is_free(scene.line)


def test_a_session_that_ends_with_it_is_told_with_the_note(scene: Scene) -> None:
    scene.stay.told = "With it its session has ended."
    scene.stay.done()
    assert scene.ends()
    _ended, noted = scene.note()
    assert noted["told"] == "With it its session has ended."
    outcome = json.loads((unpacked(scene.begun.folder) / "outcome.json").read_bytes())
    assert outcome["reason"] == "With it its session has ended."


def test_a_connection_is_used_again_only_where_the_sandbox_lasts(scene: Scene) -> None:
    scene.stay.lasts = False
    scene.stay.done()
    assert scene.ends()
    _ended, noted = scene.note()
    assert noted == {"t": "noted", "again": False}
    assert not scene.well
