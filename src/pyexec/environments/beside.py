"""Packages of our own tools beside the program: installed apart for its Python, and not on its path."""

from dataclasses import replace
from pathlib import Path

from pyexec.environments.asking import Asked
from pyexec.environments.interpreters import Interpreter
from pyexec.environments.keys import EnvironmentRequest, request_key
from pyexec.environments.orders import BuildOrder
from pyexec.environments.python_versions import show
from pyexec.environments.store import Environment, EnvironmentStore, site_packages

TOOLS_VARIABLE = "PYEXEC_TOOLS"
_LINK = "tools"
# A tool is not worth a compiler: where there is no wheel, it is not to be had.
_OPTIONS = ("--only-binary", ":all:")


def tools_link(execution: Path) -> Path:
    """Return where the link to the tools' packages lies in the folder of an execution."""
    return execution / _LINK


def tools_order(
    asked: Asked, interpreter: Interpreter | None, *, store: EnvironmentStore, uv: str, fresh_seconds: float
) -> BuildOrder:
    """Return the order for the tools of a run; without an interpreter, for that of the order before it.

    The index that the call names is for the program's packages: tools come from where the server has its own from.
    """
    request = EnvironmentRequest(
        python=str(interpreter.path) if interpreter else "",
        interpreter=interpreter,
        requirements=asked.beside,
        options=_OPTIONS,
    )
    return BuildOrder(
        root=str(store.root),
        uv=uv,
        key=request_key(request, asked.environ, asked.directory) if interpreter else None,
        python=request.python,
        python_version=show(interpreter.version) if interpreter else None,
        requirements=request.requirements,
        options=request.options,
        cwd=str(asked.directory),
        fresh_seconds=fresh_seconds,
        folder=str(asked.folder),
        holder=asked.holder,
        holder_lock=str(asked.holder_lock),
        link=str(tools_link(asked.folder)),
        lacking=asked.beside_lacking,
    )


def of_the_same_python(order: BuildOrder, made: Environment | None) -> BuildOrder:
    """Return an order for the Python of an environment that was made just now, where it names none."""
    if order.python or made is None:
        return order
    return replace(order, python=str(made.python.resolve()), python_version=made.python_version)


def link_tools(link: Path, tools: Environment) -> None:
    """Let a link lead to the packages."""
    link.unlink(missing_ok=True)
    link.symlink_to(site_packages(tools.python.parent.parent))
