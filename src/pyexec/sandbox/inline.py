"""Inline code lies in its job's folder and finds its neighbours in the call's directory all the same."""

import os
from collections.abc import Mapping
from pathlib import Path

from pyexec_guest.start import sitecustomize as guest

_FOLDER = os.path.dirname(os.path.abspath(guest.__file__))


def leading_to(script: Path, options: tuple[str, ...], directory: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that let a script import what lies in `directory`, and nothing from its own folder.

    The Python that is started with `options` and the script takes them for itself: the program and what it starts see
    `env` as it is.
    """
    start = (os.path.realpath(directory), *options, str(script))
    path = env.get("PYTHONPATH", "")
    return {
        guest.VARIABLE: guest.SEPARATOR.join(start),
        "PYTHONPATH": os.pathsep.join((_FOLDER, path)) if path else _FOLDER,
    }
