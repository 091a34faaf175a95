"""What a server loads before it answers: nothing that only its services need."""

import subprocess
import sys

import pytest

LATER = (
    "sqlalchemy",
    "alembic",
    "IPython",
    "nbclient",
    "pyexec.executions.service",
    "pyexec.walls",
    "pyexec.auth",
    "pyexec.mcp.authorization",
    "pyexec.app.authorization",
)


@pytest.mark.parametrize("module", ["pyexec.app.server", "pyexec.cli.main"])
def test_what_only_the_services_need_is_not_loaded_before_the_first_answer(module: str) -> None:
    code = f"import sys, {module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
    assert module in loaded
    assert [name for name in LATER if name in loaded] == []
