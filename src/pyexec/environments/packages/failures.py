"""Why packages cannot be had in a sandbox: one sentence, which names what was asked for and what is there."""

import re
from collections.abc import Sequence
from dataclasses import replace

from packaging.specifiers import InvalidSpecifier, SpecifierSet

from pyexec.environments.credentials import masked
from pyexec.environments.failures import PreparationFailure
from pyexec.environments.installed import normalised
from pyexec.environments.packages.sets import versions
from pyexec.environments.packages.wanted import There

_SHOWN = 5
_NEEDS = re.compile(
    r"(?P<who>[A-Za-z0-9][A-Za-z0-9._-]*)(?:[<>=!~,][^\s]*)? depends? on "
    r"(?P<what>[A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^\]]*\])?(?P<spec>[<>=!~][^\s]*[^\s,.;])"
)
_NO_WHEELS = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:[<>=!~,][^\s]*)? ha(?:s|ve) no (?:usable wheels|wheels with)")


def in_one_sentence(failure: PreparationFailure, asked: Sequence[str], there: There) -> PreparationFailure:
    """Return a failure of uv's with a message that says what does not go together, where it is that.

    Args:
        failure: As uv has said it.
        asked: What was asked for.
        there: What the sandbox has.
    """
    if failure.kind != "dependency_resolution":
        return failure
    message = _clash(failure, asked, there) or _without_wheels(failure)
    return replace(failure, message=message) if message else failure


def _clash(failure: PreparationFailure, asked: Sequence[str], there: There) -> str | None:
    text = " ".join(failure.detail.split())
    here = versions(there.packages)
    for found in _NEEDS.finditer(text):
        name = normalised(found["what"])
        if name in here and _excludes(found["spec"], here[name]):
            why = f"{found['who']} needs {name}{found['spec']}"
            return _sentence(asked, there, name, here[name], why)
    for name, version in here.items():
        if re.search(rf"(?<![\w.-]){re.escape(name)}=={re.escape(version)}(?![\w.])", text):
            return _sentence(asked, there, name, version, "what it needs excludes that")
    return None


def _sentence(asked: Sequence[str], there: There, name: str, version: str, why: str) -> str:
    shown = ", ".join(masked(one) for one in asked[:_SHOWN])
    more = f" and {len(asked) - _SHOWN} more" if len(asked) > _SHOWN else ""
    return (
        f"{shown}{more} cannot be had here: {there.whose(name)} {name} {version} already, which stays, and {why}. "
        "Ask for another version, or leave it out."
    )


def _without_wheels(failure: PreparationFailure) -> str | None:
    found = _NO_WHEELS.search(" ".join(failure.detail.split()))
    if found is None:
        return None
    return (
        f"{found[1]} has no wheel that fits the Python of sandboxes, and packages for sandboxes are never built on "
        "this machine; ask for another version or another package."
    )


def _excludes(spec: str, version: str) -> bool:
    try:
        return not SpecifierSet(spec).contains(version, prereleases=True)
    except (InvalidSpecifier, ValueError):
        return False
