"""The toolsets: tools in groups that an operator can switch on."""

from collections.abc import Mapping

TOOLSETS: Mapping[str, str] = {
    "core": "Run Python, read and end jobs.",
    "jobs": "List and remove jobs.",
    "scripts": "Save, list, view, run and delete scripts.",
    "environments": "Make, list, lock and remove environments.",
    "benchmarks": "Measure and compare programs.",
    "profiles": "Show what takes time, calls or memory in a program.",
    "quality": "Format and analyse code.",
    "execute": "Run Python as in a notebook, with values, pictures and tables; in a sandbox.",
    "sessions": "List, look into, interrupt, restart and close sessions; install packages into them.",
    "files": "List, read, write and delete the files of sessions.",
}
"""What each is for."""

DEFAULT_TOOLSETS = ("core", "jobs", "scripts", "environments", "benchmarks", "profiles", "quality")
"""What a local server offers when nobody says otherwise."""

SERVICE_TOOLSETS = tuple(name for name in TOOLSETS if name in ("execute", "sessions", "files", "jobs"))
"""What a server over HTTP offers when nobody says otherwise: nothing that runs on this machine outside a sandbox."""

NAMED_ONLY = frozenset({"execute", "sessions", "files"})
"""Those that `all` does not mean: sandboxes take memory and a second Python, so who wants them says so by name."""


def parse_toolsets(text: str) -> tuple[str, ...]:
    """Read names with commas between them; `default` and `all` stand for those.

    Raises:
        ValueError: A name is none, or there is none at all.
    """
    wanted: set[str] = set()
    for name in (part.strip().lower() for part in text.split(",")):
        match name:
            case "":
                continue
            case "all":
                wanted |= TOOLSETS.keys() - NAMED_ONLY
            case "default":
                wanted |= set(DEFAULT_TOOLSETS)
            case _ if name in TOOLSETS:
                wanted.add(name)
            case _:
                raise ValueError(f"no toolset: {name!r}")
    if not wanted:
        raise ValueError(f"no toolset: {text!r}")
    return tuple(name for name in TOOLSETS if name in wanted)
