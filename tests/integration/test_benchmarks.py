"""Benchmarks as executions: prepared before anything is measured, guarded, and read by whoever comes later."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pyexec.benchmarks.asking import BenchmarkRequest, Variant
from pyexec.benchmarks.report import Report
from pyexec.benchmarks.service import Findings
from pyexec.domain.errors import InvalidArgumentError, NotFoundError
from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.domain.principals import Principal
from tests.helpers.processes import eventually
from tests.integration.engine import Engine, gone
from tests.integration.environments import Gate, UvEngine, make_wheel, write

MakeEngine = Callable[..., Engine]
MakeUvEngine = Callable[..., UvEngine]
ENOUGH_OF_A_PNG = b"\x89PNG\r\n\x1a\nand so on"
PYPLOT = f"""
class Anything:
    def __call__(self, *_args, **_more): return self
    def __getattr__(self, _name): return self
class Figure(Anything):
    def savefig(self, path): path.write_bytes({ENOUGH_OF_A_PNG!r})
def subplots(*_args, **_more): return Figure(), (Anything(), Anything())
"""


async def begin(engine: Engine, code: str = "pass", /, **asked: Any) -> Execution:
    """Submit a benchmark; what is not of the benchmark itself is of the program."""
    names = ("runs", "warmup", "compare", "plot")
    own = {name: asked.pop(name) for name in names if name in asked}
    given: dict[str, Any] = {"script_content": code, "directory": str(engine.directory), "use_uv": False, **asked}
    program = ExecutionRequest(**given)
    request = engine.services.benchmarks.request(BenchmarkRequest(program=program, **own))
    return await engine.executions.submit(engine.principal, request)


async def found(engine: Engine, execution: Execution) -> Findings:
    return await engine.services.benchmarks.findings(engine.principal, await engine.wait(execution))


async def report_of(engine: Engine, execution: Execution) -> Report:
    report = (await found(engine, execution)).report
    assert report is not None
    return report


@pytest.mark.needs_uv
@pytest.mark.case("B133")
@pytest.mark.exhaustive
async def test_environments_of_all_variants_are_made_before_anything_is_measured(
    uv_engine: UvEngine, gate: Gate
) -> None:
    write(uv_engine.directory, {"plain.py": "import gated; print('main has', gated.VALUE)"})
    other = "import importlib.metadata as m, iniconfig; assert 'gated' not in {d.name for d in m.distributions()}"
    execution = await begin(
        uv_engine,
        use_uv=True,
        script_content=None,
        script_path="plain.py",
        dependencies=(str(gate.project),),
        runs=2,
        compare=(Variant(name="other", script_content=other, dependencies=("iniconfig",)),),
    )
    gate.wait()
    samples = uv_engine.folder(execution) / "artifacts" / "samples.jsonl"
    assert (await uv_engine.get(execution)).state == "pending"
    assert not samples.exists()
    gate.open()

    report = await report_of(uv_engine, execution)
    assert report.failure is None
    assert [(one.name, one.processes) for one in report.variants] == [("plain.py", 1), ("other", 1)]
    assert await uv_engine.stdout(execution) == "main has gated\n"
    assert uv_engine.prepared(execution).count("ready") == 2


@pytest.mark.needs_uv
async def test_an_environment_of_a_variant_that_cannot_be_made_is_said_and_nothing_runs(uv_engine: UvEngine) -> None:
    missing = Variant(name="other", dependencies=("./nowhere-to-be-found",))
    with pytest.raises(NotFoundError, match="nowhere-to-be-found"):
        await begin(uv_engine, use_uv=True, compare=(missing,))
    unmet = Variant(name="other", dependencies=("iniconfig==0.0.0.1",))
    execution = await uv_engine.wait(await begin(uv_engine, use_uv=True, compare=(unmet,)))
    assert execution.outcome is not None
    assert execution.outcome.kind == "environment_failed"
    assert "iniconfig" in (execution.outcome.reason or "")
    assert (await found(uv_engine, execution)).report is None


@pytest.mark.needs_uv
async def test_a_plot_is_drawn_by_matplotlib_from_an_environment_of_its_own(
    make_uv_engine: MakeUvEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_wheel(tmp_path, "matplotlib", "3.99", {"matplotlib/__init__.py": "", "matplotlib/pyplot.py": PYPLOT})
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path))
    monkeypatch.setenv("UV_OFFLINE", "1")
    engine = make_uv_engine()
    findings = await found(engine, await begin(engine, "import sys; assert 'matplotlib' not in sys.modules", plot=True))
    assert findings.plot == ENOUGH_OF_A_PNG
    assert findings.report is not None
    assert findings.report.notes == tuple(note for note in findings.report.notes if "busy" in note)


async def test_it_survives_the_server_that_started_it_and_is_reported_by_another(make_engine: MakeEngine) -> None:
    first = make_engine()
    code = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'): time.sleep(.01)"
    execution = await begin(first, code, runs=3)
    eventually((first.directory / "begun").exists)
    first.close()
    (first.directory / "go").touch()
    second = make_engine()
    report = await report_of(second, execution)
    assert (report.runs, report.warmup, len(report.variants)) == (3, 1, 1)


async def test_a_cancelled_one_leaves_no_process_and_gives_no_figures(engine: Engine) -> None:
    code = (
        "import os, subprocess as s, sys, time\n"
        "child = s.Popen([sys.executable, '-S', '-c', 'import time; time.sleep(99)'], start_new_session=True)\n"
        "open('pids', 'w').write(f'{os.getpid()} {child.pid}'); os.rename('pids', 'both'); time.sleep(99)\n"
    )
    execution = await begin(engine, code, runs=5)
    eventually((engine.directory / "both").exists)
    ended = await engine.stop(execution)
    assert ended.state == "cancelled"
    gone([int(pid) for pid in (engine.directory / "both").read_text().split()])
    report = (await found(engine, ended)).report
    assert report is None or (report.variants, report.failure) == ((), None)


@pytest.mark.parametrize(
    "writes",
    [
        "b'rubbish'",
        "b'[]\\n' * 9",
        "b'{}\\n'",
        "json.dumps({'benchmark': {'names': ['x'], 'runs': 1e400}}).encode()",
        "b'{' * 99999",
    ],
)
async def test_what_a_program_writes_into_the_samples_harms_nobody(engine: Engine, writes: str) -> None:
    code = (
        "import json, pathlib\n"
        "samples = pathlib.Path(__file__).parent.parent / 'artifacts' / 'samples.jsonl'\n"
        f"samples.write_bytes({writes}); samples.chmod(0o400)\n"
    )
    findings = await found(engine, await begin(engine, code))
    assert findings == Findings()


async def test_the_program_runs_as_it_would_by_itself(make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTHONUNBUFFERED", raising=False)
    engine = make_engine()
    code = (
        "import os, signal, sys\n"
        "print([n for n in ('PYEXEC_ARTIFACTS', 'PYTHONUNBUFFERED', 'ONE') if n in os.environ], sys.argv[1:])\n"
        "print(__name__, os.getsid(0) == os.getpid(), signal.getsignal(signal.SIGINT) is signal.default_int_handler)\n"
        "print(sys.stdin.read(), sorted(os.listdir('/proc/self/fd'))[:3], len(os.listdir('/proc/self/fd')))\n"
    )
    execution = await engine.wait(await begin(engine, code, args=("x",), env_vars={"ONE": "1"}, stdin="input"))
    assert await engine.stdout(execution) == ("['ONE'] ['x']\n__main__ True True\ninput ['0', '1', '2'] 4\n")


async def test_each_variant_has_its_own_arguments_variables_and_source(engine: Engine) -> None:
    write(engine.directory, {"b.py": "import os, sys; open('b', 'w').write(os.environ['V'] + sys.argv[1])"})
    code = "import os, sys; open('of ' + os.environ['V'] + sys.argv[1], 'w').close()"
    variants = (
        Variant(name="variables", env_vars={"V": "2"}),
        Variant(name="arguments", args=("y",)),
        Variant(name="file", script_path="b.py"),
    )
    report = await report_of(
        engine, await begin(engine, code, args=("x",), env_vars={"V": "1"}, compare=variants, runs=1)
    )
    assert report.failure is None
    assert {path.name for path in engine.directory.iterdir()} >= {"of 1x", "of 2x", "of 1y", "b"}
    assert (engine.directory / "b").read_text() == "1x"


async def test_secrets_of_variants_are_on_no_disk(engine: Engine) -> None:
    variant = Variant(name="other", env_vars={"TOKEN": "hunter2"})
    execution = await engine.wait(await begin(engine, compare=(variant,), runs=1, stdin="swordfish"))
    kept = b"".join(path.read_bytes() for path in engine.folder(execution).rglob("*") if path.is_file())
    assert b"names" in kept
    assert b"hunter2" not in kept
    assert b"swordfish" not in kept


async def test_another_users_is_as_unknown_as_one_that_is_not_there(engine: Engine) -> None:
    execution = await engine.wait(await begin(engine))
    stranger = Principal(issuer="local", subject="stranger")
    with pytest.raises(NotFoundError) as theirs:
        await engine.services.benchmarks.get(stranger, execution.id)
    with pytest.raises(NotFoundError) as none:
        await engine.services.benchmarks.get(engine.principal, "0" * 32)
    assert theirs.value.message.replace(execution.id, "") == none.value.message.replace("0" * 32, "")
    plain = await engine.run("pass")
    with pytest.raises(InvalidArgumentError, match="no benchmark"):
        await engine.services.benchmarks.get(engine.principal, plain.id)


async def test_the_samples_are_a_file_of_the_job(engine: Engine) -> None:
    execution = await engine.wait(await begin(engine, runs=2))
    data = await engine.executions.read_artifact(engine.principal, execution.id, "samples.jsonl")
    head, *samples = [json.loads(line) for line in data.splitlines()]
    assert head["benchmark"]["names"] == ["first"]
    assert [sample["warmup"] for sample in samples] == [True, False, False]
