"""Serving, with logs of one JSON object a line."""

import json
import logging
import sys
import time
from typing import Any, cast

import uvicorn

from pyexec_idp.app.parts import Parts
from pyexec_idp.app.web import build

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


def serve(parts: Parts) -> None:
    """Serve until a signal ends it."""
    settings = parts.settings
    set_up_logs(settings.log_level)
    uvicorn.run(
        build(parts),
        host=settings.host,
        port=settings.port,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=True,
        forwarded_allow_ips=settings.trusted_proxies,
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
