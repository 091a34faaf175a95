"""Which interpreter a session has, where files were there before anything ran in it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.sessions import SessionLimits
from pyexec.sessions.directory import SessionDirectory
from pyexec.storage.sessions import SessionFolders

OWNER = "me"


@pytest.fixture
def directory(tmp_path: Path) -> SessionDirectory:
    return SessionDirectory(SessionFolders(tmp_path), SessionLimits())


def test_the_first_that_runs_in_it_chooses_and_the_usual_one_is_a_choice(directory: SessionDirectory) -> None:
    for name, environment in (("named", "analysis"), ("usual", None)):
        directory.make(OWNER, name)
        assert not directory.is_chosen(OWNER, name)
        chosen = directory.enter(OWNER, name, python=None, environment=environment).session
        assert (chosen.environment, chosen.chosen) == (environment, True)
        directory.make(OWNER, name)
        assert directory.is_chosen(OWNER, name)
        with pytest.raises(InvalidArgumentError, match="was made with"):
            directory.enter(OWNER, name, python=None, environment="another")
        assert directory.enter(OWNER, name, python=None, environment=None).session.environment == environment


def test_of_several_that_choose_at_once_one_does(directory: SessionDirectory) -> None:
    directory.make(OWNER, "s")

    def choose(number: int) -> str | None:
        try:
            return directory.enter(OWNER, "s", python=f"3.{number}", environment=None).session.python
        except InvalidArgumentError:
            return None

    with ThreadPoolExecutor(8) as pool:
        found = [one for one in pool.map(choose, range(12, 28)) if one is not None]
    assert len(found) == 1
    assert directory.find(OWNER, "s").session.python == found[0]
