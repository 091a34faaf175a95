import math
from typing import Any

import pytest

from pyexec.benchmarks.asking import BenchmarkRequest, Variant, execution_request
from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.executions import ExecutionRequest, Harness

PROGRAM = ExecutionRequest(script_content="pass", timeout_seconds=9, label="mine", request_id="1", stdin="text")
OTHER = Variant(name="other", script_content="1")


def asked(**asked: Any) -> tuple[ExecutionRequest, Harness, Any]:
    given: dict[str, Any] = {"program": PROGRAM, **asked}
    request = execution_request(BenchmarkRequest(**given), 100.0)
    harness = request.harness
    assert harness is not None
    return request, harness, harness.instructions


@pytest.mark.parametrize(
    ("given", "runs", "warmup"),
    [
        ({}, 1, 0),
        ({"runs": 5}, 5, 1),
        ({"runs": 5, "warmup": 0}, 5, 0),
        ({"warmup": 3}, 1, 3),
        ({"compare": (OTHER,)}, 15, 1),
        ({"compare": (OTHER,), "runs": 2}, 2, 1),
    ],
)
def test_runs_and_warm_up_runs_have_defaults_that_fit_each_other(given: Any, runs: int, warmup: int) -> None:
    _request, _harness, told = asked(**given)
    assert (told["head"]["runs"], told["warmup"], len(told["rounds"])) == (runs, warmup, runs + warmup)


@pytest.mark.case("B136")
def test_every_round_has_every_variant_once_in_an_order_that_changes() -> None:
    _request, _harness, told = asked(compare=(OTHER, Variant(name="third", script_content="2")), runs=200)
    assert {tuple(sorted(round_)) for round_ in told["rounds"]} == {(0, 1, 2)}
    assert len({tuple(round_) for round_ in told["rounds"]}) == 6


def test_a_time_out_counts_for_each_run_and_a_single_run_is_timed_like_any_execution() -> None:
    request, _harness, told = asked()
    assert (request.timeout_seconds, told["timeout"]) == (9, 0)
    request, _harness, told = asked(runs=2)
    assert (request.timeout_seconds, told["timeout"]) == (0, 9)


def test_a_variant_has_what_the_first_has_unless_it_says_otherwise() -> None:
    program = ExecutionRequest(
        script_content="pass", args=("a",), dependencies=("x",), python_version="3.12", env_vars={"A": "1", "B": "1"}
    )
    variants = (
        Variant(name="file", script_path="f.py", args=()),
        Variant(name="more", python_version="3.13", dependencies=("y",), env_vars={"B": "2"}),
    )
    _request, harness, _told = asked(program=program, compare=variants)
    file, more = harness.companions
    assert (file.script_path, file.script_content, file.args, file.dependencies) == ("f.py", None, (), ("x",))
    assert (more.script_content, more.args, more.python_version) == ("pass", ("a",), "3.13")
    assert (more.dependencies, more.env_vars) == (("y",), {"A": "1", "B": "2"})


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"runs": 0}, "runs is 0; it must be between 1 and 1000."),
        ({"runs": 1001}, "runs is 1001"),
        ({"warmup": -1}, "warmup is -1"),
        ({"interval": 0.0}, "sample_interval is 0"),
        ({"interval": math.nan}, "sample_interval is nan"),
        ({"program": ExecutionRequest(script_content="", timeout_seconds=101)}, "timeout_seconds is 101"),
        ({"compare": (OTHER,) * 9}, "compare has 9 variants"),
        ({"compare": (OTHER, OTHER)}, "Two variants are called 'other'"),
        ({"compare": (Variant(name="first"),)}, "Two variants are called 'first'"),
        ({"compare": (Variant(name=""),)}, "A variant is called ''"),
        ({"compare": (Variant(name="a\nb"),)}, "A variant is called"),
        ({"compare": (Variant(name="x", script_path="a", script_content="b"),)}, "both script_path and script_content"),
    ],
)
def test_what_makes_no_sense_is_refused(given: Any, complaint: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        asked(**given)
    assert complaint in refused.value.message


def test_a_file_is_called_by_its_name() -> None:
    _request, _harness, told = asked(program=ExecutionRequest(script_path="a/b/fib.py"))
    assert told["head"]["names"] == ["fib.py"]
