"""What a saved script may be called."""

import re
import sys

from pyexec.domain.errors import InvalidArgumentError

SUFFIX = ".py"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_SHOWN = 80


def check_script_name(name: str) -> str:
    """Return the name of a script, without `.py`.

    Raises:
        InvalidArgumentError: No script can be called so.
    """
    plain = name.removesuffix(SUFFIX)
    if not _NAME.fullmatch(plain):
        raise InvalidArgumentError(
            f"A script cannot be called {name[:_SHOWN]!r}; allowed are up to 64 letters, digits, '_' and '-', not "
            "starting with '-'. A name is no path."
        )
    return plain


def is_script_name(name: str) -> bool:
    """Tell whether a script, by its name without `.py`, can be reached by it."""
    return _NAME.fullmatch(name) is not None


def is_of_python(name: str) -> bool:
    """Tell whether scripts beside one of this name would import it in place of a module of Python's own."""
    return name in sys.stdlib_module_names
