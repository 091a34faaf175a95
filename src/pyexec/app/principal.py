"""The one principal of local mode."""

import os

from pyexec.domain.principals import LOCAL_ISSUER, Principal


def local_principal() -> Principal:
    """Return the OS user."""
    return Principal(issuer=LOCAL_ISSUER, subject=str(os.geteuid()))
