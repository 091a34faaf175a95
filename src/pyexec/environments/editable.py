"""Local packages in an environment: imported from where they lie, and saying so (PEP 610)."""

import csv
import json
from pathlib import Path

from pyexec.environments.failures import PreparationFailure
from pyexec.environments.installed import Installed, installed_in, normalised
from pyexec.environments.local import source_root
from pyexec.environments.tool import ToolError


def make_editable(site: Path, wheel: Path, project: Path) -> None:
    """Have the modules of an installed package imported from its project; its metadata and commands stay.

    Raises:
        ToolError: It has compiled parts, which its source does not; or its modules are nowhere in the project.
    """
    package = _installed(site, wheel)
    folder, name = package.folder, package.name
    if "Root-Is-Purelib: true" not in (folder / "WHEEL").read_text("utf-8"):
        message = f"{name} has compiled parts and cannot be used from its source; give its path without -e."
        raise ToolError(PreparationFailure(kind="build", message=message, detail=message))
    record = folder / "RECORD"
    with record.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    kept = [row for row in rows if row[0].startswith(("../", folder.name)) or not _is_inside(site / row[0], site)]
    replaced = [Path(row[0]) for row in rows if row not in kept]
    source = _source_of(project, {path.parts[0] for path in replaced if path.suffix != ".pth"}, name)
    for path in (site / one for one in replaced):
        path.unlink(missing_ok=True)
        for cached in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
            cached.unlink()
        _remove_empty(path.parent, site)
    pth = f"__editable__.{name.replace('-', '_')}.pth"
    (site / pth).write_text(f"{source}\n", "utf-8")
    with record.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([*kept, [pth, "", ""]])


def say_where_from(site: Path, wheel: Path, project: Path, *, editable: bool) -> None:
    """Write down which project a package was built from, in place of the wheel that is gone by then."""
    origin = {"url": project.as_uri(), "dir_info": {"editable": True} if editable else {}}
    (_installed(site, wheel).folder / "direct_url.json").write_text(json.dumps(origin), "utf-8")


def _installed(site: Path, wheel: Path) -> Installed:
    name = normalised(wheel.name.partition("-")[0])
    for package in installed_in(site):
        if package.name == name:
            return package
    raise FileNotFoundError(f"{name} was not installed")


def _is_inside(path: Path, folder: Path) -> bool:
    return path.resolve().is_relative_to(folder.resolve())


def _source_of(project: Path, modules: set[str], name: str) -> Path:
    """Return the folder in a project in which all of these modules and packages lie."""
    for folder in (source_root(project), project / "src", project / "lib", project / "python", project):
        if all((folder / module).exists() for module in modules):
            return folder
    message = f"The modules of {name} ({', '.join(sorted(modules))}) are in no folder of {project} together."
    hint = "Give its path without -e."
    raise ToolError(PreparationFailure(kind="build", message=f"{message} {hint}", detail=message))


def _remove_empty(folder: Path, site: Path) -> None:
    while folder != site and folder.is_relative_to(site):
        try:
            cache = folder / "__pycache__"
            if cache.is_dir():
                cache.rmdir()
            folder.rmdir()
        except OSError:
            return
        folder = folder.parent
