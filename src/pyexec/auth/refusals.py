"""How verifying a token ends otherwise."""


class InvalidTokenError(Exception):
    """The token does not count. The reason is for our log; it never holds the token, nor anything out of it."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class IssuerUnavailableError(Exception):
    """Whether a token counts cannot be said: who would know cannot be asked, or answers nonsense."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
