"""The one principal of local mode."""

import os

from pyexec.domain.principals import Principal


def local_principal() -> Principal:
    """Return the OS user."""
    return Principal(issuer="local", subject=str(os.geteuid()))
