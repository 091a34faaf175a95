"""Why preparing a run has failed: one sentence in place of uv's nested causes."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from pyexec.environments.credentials import masked

FailureKind = Literal["dependency_resolution", "network", "index", "interpreter", "build", "disk", "other"]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_URL = re.compile(r"https?://[^\s`)>]+")
# Labels of uv 0.13, and after them those of earlier ones.
_CROSS = "\N{MULTIPLICATION SIGN}"
_ERROR = ("error:", _CROSS)
_CAUSE = ("cause:", "Caused by:", "╰─▶")
_LINE = re.compile(rf"^ {{0,2}}(?P<label>error:|cause:|hint:|{_CROSS}|Caused by:|╰─▶)\s*(?P<text>.*)$")
_UNREACHABLE = ("error sending request", "Request failed after", "Could not connect", "Failed to fetch")
_REFUSED = re.compile(r"HTTP status (?:client|server) error \((\d{3}[^)]*)\)")
# uv goes on after a 401 as if the index had no such package.
_UNAUTHORISED = re.compile(r"lack of valid authentication credentials \((\d{3}[^)]*)\)")
_NOT_FOUND = "was not found in the package registry"
_OFFLINE = "network was disabled"
_DISK_FULL = ("No space left on device", "Disk quota exceeded")
_KINDS: tuple[tuple[str, FailureKind, str], ...] = (
    ("No solution found", "dependency_resolution", "The requirements cannot be met: {because}"),
    ("No interpreter found", "interpreter", "{error}."),
    ("Failed to download and build", "build", "{error}: {last}"),
    ("Failed to build", "build", "{error}: {last}"),
    ("The build backend returned an error", "build", "{error}: {last}"),
)
_DEFAULT_INDEX = "the package index"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationFailure:
    """Why a run could not be prepared.

    Attributes:
        kind: The sort of failure.
        message: One sentence for the caller, without credentials.
        detail: All uv said, without colours and credentials.
    """

    kind: FailureKind
    message: str
    detail: str


def explain(stderr: str, environ: Mapping[str, str]) -> PreparationFailure:
    """Read what uv wrote to its standard error.

    Args:
        stderr: All of it.
        environ: The variables uv was started with: they name the index that uv's messages sometimes leave
            out.
    """
    detail = masked(_COLOUR.sub("", stderr)).strip()
    said = _statements(detail)
    error = next((text for label, text in said if label in _ERROR), detail.partition("\n")[0])
    causes = [text for label, text in said if label in _CAUSE]
    kind, message = _sentence(" ".join(text for _, text in said), error, causes, environ)
    return PreparationFailure(kind=kind, message=message, detail=detail)


def _statements(detail: str) -> list[tuple[str, str]]:
    """Return what uv itself says, with labels, each as one line; not what a build printed, which is set apart."""
    said: list[tuple[str, str]] = []
    more = False
    for line in detail.splitlines():
        match = _LINE.match(line)
        if match is not None:
            said.append((match["label"], match["text"].strip()))
        elif more and line.strip():
            label, text = said.pop()
            said.append((label, f"{text} {line.strip()}"))
        more = bool(said) and bool(line.strip()) and (match is not None or more)
    return said


def _sentence(said: str, error: str, causes: list[str], environ: Mapping[str, str]) -> tuple[FailureKind, str]:
    because = _ended(causes[0] if causes else error)
    last = _ended([error, *causes][-1])
    refused = _REFUSED.search(said) or (_UNAUTHORISED.search(said) if _NOT_FOUND in said else None)
    if any(sign in said for sign in _DISK_FULL):
        return "disk", "The disk is full, so the environment could not be made; free some space and try again."
    if _OFFLINE in said:
        index = _index_host(environ)
        return "network", f"uv is offline (it may not ask {index}) and its cache does not suffice: {because}"
    if refused is not None:
        return "index", f"The package index {_host(said, environ)} answered {refused[1]}."
    if any(sign in said for sign in _UNREACHABLE):
        return "network", f"{_host(said, environ)} cannot be reached: {last}"
    for start, kind, sentence in _KINDS:
        if error.startswith(start):
            return kind, sentence.format(because=because, error=error, last=last)
    return "other", f"The environment could not be made: {_ended(error or 'uv said nothing')}"


def _host(said: str, environ: Mapping[str, str]) -> str:
    url = _URL.search(said)
    return (urlsplit(url[0]).hostname if url is not None else None) or _index_host(environ)


def _index_host(environ: Mapping[str, str]) -> str:
    named = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
    if not named:
        return _DEFAULT_INDEX
    if "://" not in named:  # A folder.
        return named
    name, equals, url = named.partition("=")
    try:
        return urlsplit(url if equals and "://" not in name else named).hostname or _DEFAULT_INDEX
    except ValueError:
        return _DEFAULT_INDEX


def _ended(text: str) -> str:
    return text if text.endswith(".") else f"{text}."
