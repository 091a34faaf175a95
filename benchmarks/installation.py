"""The product as people get it: a wheel, installed into an environment of its own with its bytecode compiled."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STEP_SECONDS = 180.0


class BenchmarkError(Exception):
    """Something that a figure needs did not work; the text says what."""


@dataclass(frozen=True, slots=True)
class Installation:
    """An environment with the product in it."""

    folder: Path

    @property
    def python(self) -> str:
        """Its interpreter."""
        return str(self.folder / "bin" / "python")

    @property
    def uv(self) -> str:
        """The uv that came with the product."""
        return str(self.folder / "bin" / "uv")

    @property
    def pyexec(self) -> str:
        """The command that people start."""
        return str(self.folder / "bin" / "pyexec")

    def environ(self, **extra: str) -> dict[str, str]:
        """Return the variables for whatever is measured: a plain shell's, with this environment first on PATH."""
        inherited = _plain(os.environ)
        return {**inherited, "PATH": f"{self.folder / 'bin'}{os.pathsep}{inherited.get('PATH', os.defpath)}", **extra}


def install(folder: Path) -> Installation:
    """Build the wheel and install it, with the versions of the lock file, on the interpreter that runs this.

    Raises:
        BenchmarkError: A step failed.
    """
    return _install(folder, "mcp-pyexec")


def install_identity_provider(folder: Path) -> Installation:
    """Build the wheel of the identity provider and install it in the same way.

    Raises:
        BenchmarkError: A step failed.
    """
    return _install(folder, "pyexec-idp")


def _install(folder: Path, package: str) -> Installation:
    wheels, constraints, environment = folder / "wheels", folder / "constraints.txt", folder / "environment"
    _uv("build", "--quiet", "--wheel", "--package", package, "--out-dir", str(wheels))
    _uv(
        *("export", "--quiet", "--frozen", "--no-dev", "--no-emit-workspace", "--no-hashes", "--package", package),
        *("--output-file", str(constraints)),
    )
    _uv("venv", "--quiet", str(environment))
    _uv(
        *("pip", "install", "--quiet", "--compile-bytecode", "--python", str(environment / "bin" / "python")),
        *("--constraints", str(constraints), *(str(wheel) for wheel in wheels.glob("*.whl"))),
    )
    return Installation(environment)


def _uv(*arguments: str) -> None:
    environ = _plain(os.environ) | {"PYTHON": sys.executable}
    done = subprocess.run(
        ["sh", str(ROOT / "scripts" / "uv.sh"), *arguments],
        cwd=ROOT,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=STEP_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise BenchmarkError(f"uv {arguments[0]} failed:\n{done.stdout.strip()}")


def _plain(environ: Mapping[str, str]) -> dict[str, str]:
    """Leave out what would change how an interpreter or the product works."""
    unwanted = ("PYTHON", "PYEXEC_", "VIRTUAL_ENV", "COVERAGE_")
    return {name: value for name, value in environ.items() if not name.startswith(unwanted)}
