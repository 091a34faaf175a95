"""`pyexec doctor` about the wall: what a person sees, and what a program reads."""

import json

import pytest

from pyexec.app.diagnosis.checks import Check
from pyexec.cli import doctor
from tests.helpers.commands import Command
from tests.helpers.homes import processes_of

pytestmark = pytest.mark.timeout(120)
LINES = (
    Check(name="uv", status="ok", message="x" * 100),
    Check(id="wall", name="wall", group="the bubblewrap wall", status="ok", message="Up in 400 ms."),
    Check(
        id="wall.network",
        name="network",
        group="a sandbox: what is outside",
        status="fail",
        verdict="not_held",
        message=f"Addresses are connected to: NOT HELD, {'reached a listener ' * 8}.",
        hint="Start it with --security-opt seccomp=unconfined, and with --security-opt apparmor=unconfined.",
    ),
)


@pytest.mark.root
@pytest.mark.exhaustive
def test_the_wall_is_put_to_the_proof_and_nothing_of_it_stays(run: Command) -> None:
    ran = run("doctor", "--wall", "bubblewrap", "--json")
    checks = {check["id"]: check for check in json.loads(ran.stdout)["checks"]}
    assert [check for check in checks.values() if check["status"] == "fail"] == []
    assert ran.status == 0
    tried = {key: check for key, check in checks.items() if check["verdict"] is not None}
    assert len(tried) >= 29
    assert {check["verdict"] for check in tried.values()} == {"held"}
    for key in ("memory-together", "processor", "kill", "survivors", "network", "system-calls", "user", "environment"):
        assert f"wall.{key}" in tried
    assert all(len(f"ok    {check['name']}: {check['message']}") <= 120 for check in tried.values())
    assert checks["wall"]["message"].startswith("Up in ")
    assert checks["uv"]["group"] is None
    assert processes_of(run.home) == []


def test_lines_about_the_wall_are_grouped_and_fit_into_the_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def examine(*_given: object, **_named: object) -> tuple[Check, ...]:
        return LINES

    monkeypatch.setattr(doctor, "examine", examine)
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        doctor.command.main(["--wall", "bubblewrap"], standalone_mode=False)
    assert ended.value.code == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"ok    uv: {'x' * 100}"
    assert lines[1:4] == ["", "the bubblewrap wall:", "ok    wall: Up in 400 ms."]
    assert lines[4:6] == ["", "a sandbox: what is outside:"]
    assert lines[6].startswith("fail  network: Addresses are connected to: NOT HELD, reached")
    assert all(len(line) <= 80 for line in lines[1:])
    assert any(line.startswith("      > Start it with") for line in lines)
