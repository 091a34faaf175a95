"""`benchmark_script`, as a client sees it."""

import json
import re
from typing import Any

import pytest
from mcp_types import ImageContent, TextContent, TextResourceContents

from tests.helpers.mcp import FINAL, Mcp
from tests.helpers.waiting import eventually, with_enough_time

SPREAD = {"median", "min", "max", "mad"}


async def measured(mcp: Mcp, /, **arguments: Any) -> dict[str, Any]:
    """Measure something in a folder of the test's own; return the result, good or bad."""
    answer = await mcp.call("benchmark_script", **{"directory": str(mcp.directory), "wait_seconds": 50, **arguments})
    assert answer.data.get("status") in FINAL, answer.text
    return answer.data


@pytest.mark.parametrize("size", [500, 500000], ids=["small", "large"])
async def test_a_script_is_measured_and_its_figures_are_numbers(mcp: Mcp, size: int) -> None:
    answer = await mcp.call(
        "benchmark_script", script_content=f"print(sum(i*i for i in range({size})))", dependencies=[]
    )
    result = answer.data
    assert not answer.is_error
    assert (result["status"], result["exit_code"], result["execution_strategy"]) == ("completed", 0, "uv-run")
    assert (result["stdout"], result["stderr"]) == (f"{sum(i * i for i in range(size))}\n", "")
    assert (result["resolved_dependencies"], result["runs"], result["warmup_runs"]) == ([], 1, 0)
    assert result["python_version_used"].startswith("3.")
    for name in ("wall_time_seconds", "cpu_time_seconds", "peak_rss_mb", "elapsed_seconds"):
        assert isinstance(result[name], float)
        assert result[name] > 0
    assert result["peak_rss_mb"] < 40
    (variant,) = result["variants"]
    assert set(variant["wall"]) == SPREAD
    assert variant["minor_page_faults"] > 0
    assert "| wall |" in answer.text
    assert result["measured"] in answer.text


@pytest.mark.case("B132")
@pytest.mark.exhaustive
async def test_a_cold_first_run_is_left_out_or_flagged(mcp: Mcp) -> None:
    code = "import os, time\nif not os.path.exists('marker'): time.sleep(1.5); open('marker', 'w').close()"
    warmed = await measured(mcp, script_content=code, runs=9)
    assert warmed["variants"][0]["wall"]["max"] < 1.5
    took = re.match(r"The first run, a warm-up that does not count, took (\d+\.\d+) s", warmed["notes"][0])
    assert took is not None, warmed["notes"]
    assert float(took[1]) >= 1.5
    (mcp.directory / "marker").unlink()
    cold = await measured(mcp, script_content=code, runs=9, warmup=0)
    assert 1 in cold["variants"][0]["outlier_runs"]
    assert any("use warmup" in note for note in cold["notes"])
    assert cold["wall_time_seconds"] < 1.5


@pytest.mark.case("B134")
async def test_a_run_that_fails_is_named_and_no_figure_mixes_it_with_others(mcp: Mcp) -> None:
    code = "import os, sys; n = len(os.listdir()); open(str(n), 'w'); sys.exit('not this one' if n % 3 == 2 else 0)"
    result = await measured(mcp, script_content=code, runs=9, warmup=0)
    assert (result["status"], result["exit_code"], result["failed_run"]) == ("failed", 1, 3)
    assert result["error"] == "Run 3 of 9 failed with exit code 1; no figures are given."
    assert result["stderr"] == "not this one\n"
    assert not {"wall_time_seconds", "cpu_time_seconds", "peak_rss_mb", "variants"} & set(result)


@pytest.mark.case("B134")
async def test_a_run_that_takes_too_long_is_named(mcp: Mcp) -> None:
    code = "import os, time; n = len(os.listdir()); open(str(n), 'w'); time.sleep(60 if n == 1 else 0)"

    async def ask(seconds: float) -> dict[str, Any]:
        for run in mcp.directory.iterdir():
            run.unlink()
        return await measured(mcp, script_content=code, runs=3, warmup=0, timeout_seconds=seconds)

    result, _seconds = await with_enough_time(ask, lambda result: result.get("failed_run") == 2, times=1.5)
    assert (result["status"], result["failed_run"]) == ("failed", 2)
    assert result["error"] == "Run 2 of 3 took too long and was ended (SIGINT); no figures are given."
    assert result["stderr"].endswith("[TIMEOUT]")
    assert "variants" not in result
    alone = await measured(mcp, script_content="import time; time.sleep(60)", timeout_seconds=1)
    assert (alone["status"], alone["stderr"][-9:]) == ("timed_out", "[TIMEOUT]")


@pytest.mark.case("B136")
async def test_variants_are_compared_with_the_first_in_rounds(mcp: Mcp) -> None:
    slow = "import time; time.sleep(0.3)"
    result = await measured(
        mcp,
        script_content="import sys; sys.exit(int(sys.argv[1]))",
        args=[0],
        runs=8,
        warmup=0,
        compare=json.dumps(["import sys", {"name": "slow", "script_content": slow}]),
    )
    first, same, slower = result["variants"]
    assert [one["name"] for one in (first, same, slower)] == ["first", "variant 2", "slow"]
    assert not {"verdict", "ratio", "ratio_low", "ratio_high"} & set(first)
    assert same["ratio_low"] <= same["ratio"] <= same["ratio_high"]
    assert slower["verdict"] == "slower"
    assert slower["ratio_low"] > 1
    assert set(slower["wall"]) == SPREAD | {"ci_low", "ci_high"}
    (content,) = await mcp.client.read_resource(f"job-file://{result['job_id']}/samples.jsonl")
    assert isinstance(content, TextResourceContents)
    order = [json.loads(line)["program"] for line in content.text.splitlines()[1:]]
    assert [sorted(order[at : at + 3]) for at in range(0, len(order), 3)] == [[0, 1, 2]] * 8


async def test_it_goes_on_as_a_job_that_says_how_far_it_is_and_is_reported_later(mcp: Mcp) -> None:
    code = "import os, time\nopen('begun', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)"
    given = {"script_content": code, "runs": 2, "directory": str(mcp.directory), "job_label": "later"}
    begun = await mcp.get("benchmark_script", async_mode=True, **given)
    assert begun["status"] in ("pending", "running")
    await eventually((mcp.directory / "begun").exists)
    early = await mcp.get("benchmark_script", job_id=begun["job_id"])
    assert (early["status"], "variants" in early) == ("running", False)
    assert "::progress 1/3 warm-up 1 of 1" in (await mcp.output(begun["job_id"]))["stderr"]
    (mcp.directory / "go").touch()
    await mcp.finished(begun["job_id"])
    report = await mcp.get("benchmark_script", job_id=begun["job_id"])
    assert (report["runs"], report["stderr"]) == (2, "")
    assert report["wall_time_seconds"] > 0
    assert (await mcp.job(begun["job_id"]))["kind"] == "benchmark"


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"script_content": "1", "runs": 0}, "runs is 0"),
        ({"script_content": "1", "compare": [{"label": "x"}]}, "compare: variant 2: label: Extra inputs"),
        ({"script_content": "1", "compare": [{"env_vars": {"A": ["secret"]}}]}, "compare: variant 2: env_vars.A"),
        ({"script_content": "1", "compare": "text"}, "compare"),
        ({"script_content": "1", "job_id": "0" * 32}, "job_id was given, and something to measure"),
        ({}, "There is nothing to run"),
    ],
)
async def test_what_cannot_be_measured_is_refused(mcp: Mcp, given: dict[str, Any], why: str) -> None:
    refused = await mcp.refused("benchmark_script", **given)
    assert refused["error_code"] == "invalid_argument"
    assert why in refused["error"]
    assert "secret" not in refused["error"]


async def test_a_job_that_is_none_of_its_own_is_refused(mcp: Mcp) -> None:
    plain = await mcp.run("print(1)")
    assert (await mcp.refused("benchmark_script", job_id=plain["job_id"]))["error_code"] == "invalid_argument"
    assert (await mcp.refused("benchmark_script", job_id="0" * 32))["error_code"] == "not_found"


async def test_a_plot_goes_out_once_as_a_picture(mcp: Mcp) -> None:
    job_id = (await measured(mcp, script_content="pass"))["job_id"]
    picture = b"\x89PNG\r\n\x1a\npicture"
    (mcp.home / "executions" / job_id / "artifacts" / "benchmark.png").write_bytes(picture)
    result = await mcp.client.call_tool("benchmark_script", {"job_id": job_id})
    text, image = result.content
    assert isinstance(text, TextContent)
    assert isinstance(image, ImageContent)
    assert (image.mime_type, image.data) == ("image/png", "iVBORw0KGgpwaWN0dXJl")
    assert image.data not in text.text
    assert image.data not in json.dumps(result.structured_content)
