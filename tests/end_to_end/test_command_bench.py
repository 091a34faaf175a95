"""`pyexec bench`."""

import json

from tests.helpers.commands import Command


def test_a_file_is_measured_and_compared(run: Command) -> None:
    (run.directory / "a.py").write_text("print('of a')")
    (run.directory / "b.py").write_text("print('of b')")
    ran = run("bench", "-n", "2", "-w", "0", "--compare", "b.py", "a.py")
    assert (ran.status, ran.stderr) == (0, "")
    assert "Benchmark 1: a.py\n  Time (median ± MAD):" in ran.stdout
    assert "2 runs\n" in ran.stdout
    assert "\nSummary\n  b.py: no difference beyond noise: " in ran.stdout
    assert "With fewer than 8 runs no difference can be told from noise" in ran.stdout
    assert "of b" not in ran.stdout


def test_code_is_measured_for_programs_to_read(run: Command) -> None:
    told = json.loads(run.ok("bench", "-n", "2", "--json", "-c", "pass"))
    (variant,) = told["report"]["variants"]
    assert (told["status"], told["report"]["runs"], variant["name"]) == ("completed", 2, "the code")
    assert variant["wall"]["median"] > 0


def test_a_run_that_fails_ends_it_with_its_status_and_what_it_said(run: Command) -> None:
    ran = run("bench", "-c", "import sys; print('why', file=sys.stderr); sys.exit(7)")
    assert (ran.status, ran.stdout) == (7, "")
    assert ran.stderr == "why\npyexec: Warm-up run 1 failed with exit code 7; no figures are given.\n"


def test_what_is_not_there_is_an_error(run: Command) -> None:
    ran = run("bench", "nowhere.py")
    assert (ran.status, ran.stdout) == (1, "")
    assert "nowhere.py does not exist" in ran.stderr
    assert run("bench").status == 2
