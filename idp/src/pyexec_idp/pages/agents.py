"""What browsers say they are, in words for people."""

import re

_LONGEST = 60
_BROWSERS = (
    ("Edge", r"\bEdg(?:e|A|iOS)?/"),
    ("Opera", r"\b(?:OPR|Opera)/"),
    ("Firefox", r"\b(?:Firefox|FxiOS)/"),
    ("Chrome", r"\b(?:HeadlessChrome|Chrome|Chromium|CriOS)/"),
    ("Safari", r"\bVersion/\S+ .*\bSafari/"),
)
"""In this order: most say that they are the later ones, too."""
_SYSTEMS = (
    ("an iPhone", r"\biPhone\b"),
    ("an iPad", r"\biPad\b"),
    ("Android", r"\bAndroid\b"),
    ("Windows", r"\bWindows\b"),
    ("a Mac", r"\bMac OS X\b"),
    ("Chrome OS", r"\bCrOS\b"),
    ("Linux", r"\bLinux\b"),
)


def named(agent: str) -> str:
    """Return a browser and its system by name, as "Firefox on Linux"; what it says, shortened, where it is unknown."""
    browser = _first(_BROWSERS, agent)
    system = _first(_SYSTEMS, agent)
    if browser is None:
        return agent[:_LONGEST] or "An unknown browser"
    return browser if system is None else f"{browser} on {system}"


def _first(known: tuple[tuple[str, str], ...], agent: str) -> str | None:
    return next((name for name, pattern in known if re.search(pattern, agent)), None)
