"""Who asks."""

from dataclasses import dataclass, field
from functools import lru_cache

LOCAL_ISSUER = "local"
"""Who vouches for the OS user; no URL, so that no other issuer can be called so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The one on whose behalf something runs: issuer and subject, or the OS user in local mode.

    By which client they ask this time, and from which address, makes them nobody else: that is for the audit log.
    """

    issuer: str
    subject: str
    client: str = field(default="", compare=False)
    address: str = field(default="", compare=False)

    @property
    def key(self) -> str:
        """The owner as stored in every record; equal for equal principals only."""
        return _key_of(self.issuer, self.subject)


@lru_cache(maxsize=1000)
def _key_of(issuer: str, subject: str) -> str:
    # The last part is empty: records are called so since a client was meant to be there.
    return "|".join(part.replace("%", "%25").replace("|", "%7C") for part in (issuer, subject, ""))


def is_called(owner: str, name: str) -> bool:
    """Tell whether an owner, as stored in records, is the one whom an operator calls so: `subject`, `issuer|subject`.

    A subject alone is the OS user: other issuers may know somebody of the same name.
    """
    issuer, subject = (part.replace("%7C", "|").replace("%25", "%") for part in owner.split("|")[:2])
    return name == (subject if issuer == LOCAL_ISSUER else f"{issuer}|{subject}")


def is_local(owner: str) -> bool:
    """Tell whether an owner, as stored in records, is the OS user."""
    return owner.partition("|")[0] == LOCAL_ISSUER
