"""Whether, and how, clients are found by their documents."""

from collections.abc import Callable

from pyexec_idp.domain.values import Client
from pyexec_idp.grants.documents import Documents
from pyexec_idp.grants.fetching import Fetcher
from pyexec_idp.settings import Settings


def find_documents(settings: Settings) -> Callable[[str], Client | None] | None:
    """Return what finds clients by the URL of their document, None where that is switched off."""
    if not settings.client_documents:
        return None
    return Documents(Fetcher().fetch, settings.redirect_schemes).find
