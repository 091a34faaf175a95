"""Pages from templates: everything put in is escaped, and nothing comes from elsewhere."""

import base64
import hashlib
from importlib.resources import files
from typing import Any
from urllib.parse import urlsplit

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.responses import HTMLResponse, Response

STYLE = files("pyexec_idp.pages").joinpath("style.css").read_text(encoding="utf-8")
_STYLE_HASH = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()


_TEMPLATES = Environment(
    loader=PackageLoader("pyexec_idp.pages", "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


class Pages:
    """Renders them, with their own content security policy."""

    def __init__(self, issuer: str, title: str) -> None:
        self._everywhere = {"base": issuer, "title": title, "style": STYLE}

    def show(self, name: str, *, status: int = 200, form_targets: str = "'self'", **values: Any) -> Response:
        """Return a page. `form_targets` is where its forms, and the redirects that follow them, may lead."""
        body = _TEMPLATES.get_template(f"{name}.html").render(self._everywhere, **values)
        policy = (
            f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; img-src 'self'; "
            f"form-action {form_targets}; frame-ancestors 'none'; base-uri 'none'"
        )
        # With no-referrer a browser says `Origin: null` when it posts a form of this page, and that is nobody's.
        headers = {"Content-Security-Policy": policy, "Referrer-Policy": "same-origin"}
        return HTMLResponse(body, status_code=status, headers=headers)

    def fault(self, message: str, *, status: int = 400) -> Response:
        """Return the page that says what went wrong, in a sentence of ours."""
        return self.show("fault", status=status, message=message)


def form_targets(redirect_uri: str) -> str:
    """Return where a form may lead: here, and on to the client, for browsers hold redirects to that too."""
    parts = urlsplit(redirect_uri)
    if not parts.netloc or parts.netloc.startswith("["):  # A policy has no way to write such an address.
        return f"'self' {parts.scheme}:"
    return f"'self' {parts.scheme}://{parts.netloc}"
