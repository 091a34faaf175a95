"""Stands before pip where the processes of a sandbox look for modules: what would install says what to do instead.

For everything else it makes way. `python -m pip`, pip's own commands and programs that import it all come by here.
"""

import importlib.machinery
import importlib.util
import os
import re
import sys

NAME = "pip"
IN_A_SANDBOX = (
    "Packages are not installed from inside a cell: name them in dependencies= of execute_python, or give them to this "
    "session with the tool install_packages."
)

_COMMAND = re.compile(r"pip[\d.]*")
_VERBS = frozenset({"install", "uninstall", "download", "wheel"})


def installs(argv: "list[str]") -> bool:
    """Tell whether a process with these arguments is pip, and would install. While `-m` is looked for, it is first."""
    program, *arguments = argv or [""]
    if program != "-m" and not _COMMAND.fullmatch(os.path.basename(program)):
        return False
    words = [argument for argument in arguments if not argument.startswith("-")]
    return bool(words) and words[0] in _VERBS


def _make_way() -> None:
    """Have whoever imports this get pip itself."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [entry for entry in sys.path if entry != here]
    spec = importlib.machinery.PathFinder.find_spec(NAME)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {NAME!r}", name=NAME)
    module = importlib.util.module_from_spec(spec)
    sys.modules[NAME] = module
    spec.loader.exec_module(module)


if __name__ == NAME:
    if installs(sys.argv):
        sys.stderr.write(f"ERROR: {IN_A_SANDBOX}\n")
        raise SystemExit(1)
    _make_way()
