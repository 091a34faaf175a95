"""What is installed in an environment, read from its `*.dist-info` folders.

The little of it that a build needs: `importlib.metadata` takes a quarter of the builder's start.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyexec.environments.credentials import stripped

_HEADER = re.compile(r"(?P<name>Name|Version):\s*(?P<value>.*?)\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Installed:
    """One package: its normalised name (PEP 503), its version, and its `*.dist-info` folder."""

    name: str
    version: str
    folder: Path

    def shown(self) -> str:
        """Return it as `name==version`, or as `name @ url` where it came from a URL (PEP 610), without credentials."""
        try:
            origin = json.loads((self.folder / "direct_url.json").read_bytes())
            url = stripped(str(origin["url"]))
            vcs = origin.get("vcs_info")
            return f"{self.name} @ {vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else f"{self.name} @ {url}"
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return f"{self.name}=={self.version}"

    def forget_credentials(self) -> None:
        """Take the credentials out of the URL that it came from."""
        file = self.folder / "direct_url.json"
        if file.exists():
            origin = json.loads(file.read_bytes())
            file.write_text(json.dumps({**origin, "url": stripped(str(origin["url"]))}), "utf-8")


def installed_in(site: Path) -> Iterator[Installed]:
    """Yield the packages in a site-packages folder, in no order."""
    for folder in site.glob("*.dist-info"):
        values: dict[str, str] = {}
        with (folder / "METADATA").open(encoding="utf-8", errors="replace") as file:
            for line in file:
                match = _HEADER.match(line)
                if match is not None:
                    values.setdefault(match["name"], match["value"])
                if len(values) == 2 or not line.strip():  # The description follows.
                    break
        name = values.get("Name") or folder.name.partition("-")[0]
        yield Installed(name=normalised(name), version=values.get("Version", ""), folder=folder)


def normalised(name: str) -> str:
    """Return the name by which all spellings of a package's name are known (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
