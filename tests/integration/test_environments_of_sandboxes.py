"""Environments of sandboxes, made for real."""

import stat
import subprocess
from pathlib import Path

import pytest

from pyexec.environments.orders import read_answer
from pyexec.executions.sandboxed import InSandboxes
from pyexec.storage.locks import held
from tests.integration.environments import UvEngine, make_wheel

pytestmark = pytest.mark.needs_uv


async def test_what_is_made_under_a_closed_umask_can_be_read_by_the_users_of_sandboxes(
    uv_engine: UvEngine, tmp_path: Path
) -> None:
    wheel = make_wheel(tmp_path, "hello", "1", {"hello/__init__.py": "VALUE = 42\n"})
    sandboxing = uv_engine.executions._submitter._in_sandboxes
    assert isinstance(sandboxing, InSandboxes)
    environments = sandboxing.environments
    holder = tmp_path / "holder"
    holder.mkdir()
    with held(holder / "lock"):
        plan = environments.plan(folder=holder, holder_lock=holder / "lock", owner="me", packages=(str(wheel),))
        assert plan.prepare is not None
        subprocess.run(
            plan.prepare.argv,
            input=plan.prepare.stdin,
            env=environments.build_environ,
            umask=0o077,
            text=True,
            check=True,
        )
        made = uv_engine.store.get(read_answer(holder).digest or "")
        again = environments.plan(folder=holder, holder_lock=holder / "lock", owner="me", packages=(str(wheel),))

    assert made is not None
    assert again.environment is not None
    assert (again.prepare, again.environment.digest) == (None, made.digest)
    site = next((uv_engine.store.folder(made.digest) / "lib").glob("python3.*/site-packages"))
    for path in (site, site / "hello", site / "hello/__init__.py"):
        assert path.stat().st_mode & stat.S_IROTH, path
    assert stat.S_IMODE(uv_engine.store.root.stat().st_mode) == 0o700
