"""What the files of all sessions of one owner may come to."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyexec.domain.errors import WorkspacesFullError
from pyexec.domain.principals import Principal
from pyexec.storage.state_folder import StateFolder
from tests.helpers.waiting import eventually
from tests.integration.sandboxes import SETTINGS, SandboxEngine

pytestmark = [pytest.mark.needs_uv, pytest.mark.root]

SOMEBODY_ELSE = Principal(issuer="https://issuer.example", subject="somebody")
FILL = "open('{}', 'wb').write(bytes({} << 20)); 'filled'"


@pytest.fixture(scope="module")
def engine(module_home: Path, kept_environments: None) -> Iterator[SandboxEngine]:
    with SandboxEngine(module_home, **SETTINGS, sandbox_workspace=16, sessions_workspace=20) as made:
        yield made


async def refusal_of(engine: SandboxEngine, session_id: str) -> str:
    ended = await engine.run("1", session_id=session_id)
    assert (ended.outcome and ended.outcome.kind) == "start_failed"
    return (ended.outcome and ended.outcome.reason) or ""


async def test_who_has_more_than_they_may_is_told_and_deletes_or_closes_to_go_on(engine: SandboxEngine) -> None:
    files, me = engine.services.files, engine.principal
    assert await engine.value(FILL.format("large", 12), "first") == "'filled'"
    assert await engine.value(FILL.format("large", 12), "second") == "'filled'"

    for session_id in ("first", "third"):
        said = await refusal_of(engine, session_id)
        assert "The files of your sessions take 24 MB; 20 MB are allowed for all together" in said
        assert "delete_file, or close_session" in said
    with pytest.raises(WorkspacesFullError, match="take 24 MB; 20 MB are allowed"):
        await files.write(me, "first", "more", "text", encoding="text", manner="create")

    await files.delete(me, "first", "large", recursive=False)
    assert await engine.value("1", "third") == "1"
    await files.write(me, "first", "more", "text", encoding="text", manner="create")
    for session_id in ("first", "second", "third"):
        await engine.sessions.close(me, session_id)


async def test_files_of_ended_sessions_count_and_those_of_others_do_not(engine: SandboxEngine) -> None:
    me = engine.principal
    for session_id in ("first", "second"):
        assert await engine.value(FILL.format("large", 12), session_id) == "'filled'"
        await engine.run("import os; os._exit(0)", session_id=session_id)
    assert "20 MB are allowed" in await refusal_of(engine, "third")
    await engine.sessions.make(SOMEBODY_ELSE, "theirs")
    await engine.services.files.write(SOMEBODY_ELSE, "theirs", "a", "text", encoding="text", manner="create")
    await engine.sessions.close(me, "first")
    assert await engine.value("1", "third") == "1"
    for session_id in ("second", "third"):
        await engine.sessions.close(me, session_id)


async def test_plain_folders_as_an_ordinary_user_has_them_are_held_to_it_too(engine: SandboxEngine) -> None:
    me, sessions = engine.principal, StateFolder(engine.home).sessions
    for session_id in ("plain", "also-plain"):
        await engine.sessions.make(me, session_id)
        sessions.of(me.key, session_id).path.joinpath("workspace").mkdir(mode=0o700)
        assert await engine.value(FILL.format("large", 12), session_id) == "'filled'"

    async def refused() -> bool:  # Somebody looks how much there is, once a second or so.
        ended = await engine.run("1", session_id="plain")
        return "take 24 MB; 20 MB are allowed" in ((ended.outcome and ended.outcome.reason) or "")

    await eventually(refused)
    await engine.sessions.close(me, "also-plain")
    assert await engine.value("1", "plain") == "1"
