"""Makes inline code find its neighbours as `python file.py` would in the call's directory.

Inline code lies in the folder of its job, which Python puts first on `sys.path`. This folder here stands first on
`PYTHONPATH`, so that Python imports this module while it starts, before the program. What it does leaves no trace:
`sys.path[0]` is the directory, the variables are what they were, and a `sitecustomize` of somebody else is imported
in place of this one. Where `PYEXEC_INLINE` means another process (one that starts the program, say), nothing is
changed but that.

Runs on every Python that people use: no syntax newer than 3.6.
"""

import os
import sys

NAME = "sitecustomize"
VARIABLE = "PYEXEC_INLINE"
SEPARATOR = "\x1f"


def _lead() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if entry != here]
    directory, _, command = os.environ.get(VARIABLE, "").partition(SEPARATOR)
    arguments = command.split(SEPARATOR)
    is_it = bool(directory) and _arguments()[: len(arguments)] == arguments
    if is_it:
        _clean_environment(here)
    try:
        _import_the_other()
    finally:  # Python goes on after most faults in it.
        if is_it and not getattr(sys.flags, "safe_path", False):
            sys.path.insert(0, directory)
            if len(arguments) == 1:
                _drop_folder_of(arguments[0])


def _arguments() -> "list[str]":
    """Return the arguments of this process, which `sys.argv` does not have yet."""
    known = getattr(sys, "orig_argv", None)  # Python 3.10
    if known is not None:
        return list(known[1:])
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return [os.fsdecode(part) for part in file.read().split(b"\0")[1:-1]]
    except OSError:
        return []


def _clean_environment(here: str) -> None:
    del os.environ[VARIABLE]
    first, _, rest = os.environ.get("PYTHONPATH", "").partition(os.pathsep)
    if first == here:
        if rest:
            os.environ["PYTHONPATH"] = rest
        else:
            del os.environ["PYTHONPATH"]


def _import_the_other() -> None:
    """Import the `sitecustomize` that Python would have found; that there is none, `site` must hear at the end."""
    ours = sys.modules.pop(NAME)
    try:
        __import__(NAME)
    except ImportError as error:
        if error.name != NAME:
            raise
        sys.modules[NAME] = ours


def _drop_folder_of(script: str) -> None:
    """Take the script's own folder from the path again.

    Python puts it there after `site` is done, then makes the loader of `__main__`: a moment in which nothing of the
    program has run. Where it makes none this way, the folder stays, before the directory.
    """
    try:
        import _frozen_importlib_external as importer  # noqa: PLC0415 - not every Python has it
    except ImportError:
        return
    original = importer.SourceFileLoader

    class FirstLoader(original):
        def __new__(cls, fullname: str, path: str) -> "object":
            if fullname == "__main__":
                importer.SourceFileLoader = original
                folder = os.path.dirname(os.path.realpath(script))
                if sys.path and sys.path[0] == folder:
                    del sys.path[0]
            return original(fullname, path)

    importer.SourceFileLoader = FirstLoader


if __name__ == NAME:
    _lead()
    if sys.modules.get(NAME).__dict__ is globals():
        raise ImportError("there is none", name=NAME)
