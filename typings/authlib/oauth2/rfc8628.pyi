from typing import Any

from authlib.oauth2.rfc6749 import BaseGrant

DEVICE_CODE_GRANT_TYPE: str

class DeviceCodeGrant(BaseGrant): ...

class DeviceAuthorizationEndpoint:
    INTERVAL: int
    EXPIRES_IN: int
    def __init__(self, server: Any) -> None: ...
    def __call__(self, request: Any) -> tuple[int, Any, list[tuple[str, str]]]: ...
    def authenticate_client(self, request: Any) -> Any: ...
