"""Installing packages from inside a cell: recognised, and answered with what to do instead."""

import os
import re
import shlex
from typing import Any, NoReturn

from IPython.core.error import UsageError

from pyexec_guest.instead.pip import IN_A_SANDBOX

ON_THE_HOST = (
    "Packages are not installed from inside a cell: name them in dependencies, and they are there when it starts."
)
MAGICS = ("pip", "conda", "mamba", "micromamba", "uv")

_PUNCTUATION = frozenset("();<>|&")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PIP = re.compile(r"pip[\d.]*")
_PYTHON = re.compile(r"(python|pypy)[\d.]*")
_BEFORE = frozenset({"command", "env", "exec", "nohup", "sudo", "time", "!"})
_VERBS = frozenset({"install", "uninstall", "add", "remove", "sync", "download"})
_CONDA = frozenset({"conda", "mamba", "micromamba", "poetry", "pdm"})


def installs(command: str) -> bool:
    """Tell whether a shell's command line installs packages, as far as it says so."""
    try:
        lexer = shlex.shlex(command.replace("\n", " ; "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return False  # The shell will say what is wrong with it.
    one: list[str] = []
    for word in [*words, ";"]:
        if set(word) <= _PUNCTUATION:
            if _installs(one):
                return True
            one = []
        else:
            one.append(word)
    return False


def refuse_pip(module: Any) -> None:
    """Have `pip.main` say what to do instead."""
    module.main = _refuse_main


def _refuse_main(*_arguments: object, **_options: object) -> NoReturn:
    raise UsageError(IN_A_SANDBOX)


def _installs(words: "list[str]") -> bool:
    while words and (words[0] in _BEFORE or _ASSIGNMENT.match(words[0])):
        words = words[1:]
    if not words:
        return False
    program, *rest = os.path.basename(words[0]), *words[1:]
    if _PYTHON.fullmatch(program) and "-m" in rest[:-1]:
        program, *rest = rest[rest.index("-m") + 1 :]
    if program == "uv":
        plain = [word for word in rest if not word.startswith("-")]
        return bool(plain) and (plain[0] in _VERBS or (plain[0] == "pip" and not _VERBS.isdisjoint(plain[1:2])))
    if _PIP.fullmatch(program) or program in _CONDA:
        plain = [word for word in rest if not word.startswith("-")]
        return bool(plain) and plain[0] in _VERBS
    return False
