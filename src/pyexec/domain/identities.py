"""Who a token says is asking, once it has been verified."""

from dataclasses import dataclass

from pyexec.domain.principals import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """What a verified token says. Never holds the token.

    Attributes:
        issuer: Who vouches for it; its URL, letter by letter as configured.
        subject: The person, or the client where it acts for itself; unique for its issuer only.
        client_id: The program that the token was given to.
        scopes: What it was given for.
        token_id: Its own name (`jti`), for the audit log; a digest of the token where it has none.
        expires_at: When it ends, in seconds since 1970; None where its issuer does not say.
        issued_at: When it was made, likewise.
    """

    issuer: str
    subject: str
    client_id: str
    scopes: frozenset[str]
    token_id: str
    expires_at: float | None
    issued_at: float | None = None

    @property
    def principal(self) -> Principal:
        """On whose behalf things run: the person, with whatever client. See decision 0022."""
        return Principal(issuer=self.issuer, subject=self.subject, client=self.client_id)
