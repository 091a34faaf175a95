"""Who asks."""

from dataclasses import dataclass


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
