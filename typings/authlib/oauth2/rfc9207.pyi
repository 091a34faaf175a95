from typing import Any

class IssuerParameter:
    def add_issuer_parameter(self, authorization_server: Any, response: Any) -> None: ...
