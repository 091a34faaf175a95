"""Who asks."""

from dataclasses import dataclass

LOCAL_ISSUER = "local"
"""Who vouches for the OS user; no URL, so that no other issuer can be called so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The one on whose behalf something runs: issuer, subject and client, or the OS user in local mode."""

    issuer: str
    subject: str
    client: str = ""

    @property
    def key(self) -> str:
        """The owner as stored in every record; equal for equal principals only."""
        return "|".join(
            part.replace("%", "%25").replace("|", "%7C") for part in (self.issuer, self.subject, self.client)
        )


def is_local(owner: str) -> bool:
    """Tell whether an owner, as stored in records, is the OS user."""
    return owner.partition("|")[0] == LOCAL_ISSUER
