"""Serving, with logs of one JSON object a line."""

import importlib
import json
import logging
import sys
import time
from typing import Any, cast

import uvicorn
from starlette.routing import Route
from starlette.types import ASGIApp

from pyexec_idp.app.parts import Parts
from pyexec_idp.app.web import build
from pyexec_idp.domain.errors import InvalidSettingError

_DRAIN_SECONDS = 10


class JsonLines(logging.Formatter):
    """One JSON object a line. What came in is never in it: no addresses of requests, no forms, no tokens."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "at": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created)) + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **cast("dict[str, Any]", getattr(record, "fields", {})),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def set_up_logs(level: str) -> None:
    """Send everything to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    # Authlib's debug messages have tokens in them.
    logging.getLogger("authlib").setLevel(logging.WARNING)


def application(parts: Parts) -> ASGIApp:
    """Return what is served, traced where the operator says so.

    Raises:
        InvalidSettingError: It is to be traced, and what that needs is not installed.
    """
    app = build(parts)
    if not parts.settings.tracing:
        return app
    try:
        tracing = importlib.import_module("pyexec_idp.app.tracing")
    except ImportError as error:
        raise InvalidSettingError(
            "PYEXEC_IDP_TRACING needs OpenTelemetry, which is not installed.", hint="pip install 'pyexec-idp[otel]'"
        ) from error
    return tracing.traced(app, [route.path for route in app.routes if isinstance(route, Route)])


def serve(parts: Parts) -> None:
    """Serve until a signal ends it."""
    settings = parts.settings
    set_up_logs(settings.log_level)
    uvicorn.run(
        application(parts),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
