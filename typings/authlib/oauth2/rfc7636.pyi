from typing import Any

class CodeChallenge:
    SUPPORTED_CODE_CHALLENGE_METHOD: list[str]
    DEFAULT_CODE_CHALLENGE_METHOD: str
    def __init__(self, required: bool = True) -> None: ...
    def validate_code_challenge(self, grant: Any, redirect_uri: str) -> None: ...
