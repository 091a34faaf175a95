"""Who asks over HTTP."""

from starlette.responses import Response


class NotKnownError(Exception):
    """Nobody knows who asks; `response` says so to them."""

    def __init__(self, response: Response) -> None:
        super().__init__("nobody knows who asks")
        self.response = response
