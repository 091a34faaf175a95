"""Notebooks: whether one can be run, and what it says it needs."""

import json
from pathlib import Path
from typing import cast

from pyexec.domain.errors import InvalidArgumentError
from pyexec.storage.artifacts import is_artifact_name

SUFFIX = ".ipynb"
TOOLS = ("nbclient", "ipykernel")
"""The packages that a notebook is run with, besides its own."""
_FORMAT = 4
_OTHER_NAME = "notebook.ipynb"
_NAME_LENGTH = 60


def read_notebook(path: Path, content: bytes) -> bytes:
    """Return the source of a notebook's first code cell, which may have a header as a script has.

    Raises:
        InvalidArgumentError: It is no notebook, one of an older format, or one for another language.
    """
    try:
        value: object = json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        where = f"line {error.lineno}: {error.msg}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise InvalidArgumentError(f"{path} is not a notebook: it is no valid JSON ({where}).") from None
    notebook = _table(value)
    version = notebook.get("nbformat")
    if version != _FORMAT:
        said = f"is a notebook of format {version}" if isinstance(version, int) else "is not a notebook: no nbformat"
        raise InvalidArgumentError(
            f"{path} {said}; only format {_FORMAT} can be run.",
            hint="jupyter nbconvert --to notebook --nbformat 4 makes one of that format.",
        )
    language = _language(_table(notebook.get("metadata")))
    if language.lower() not in ("", "python", "ipython"):
        raise InvalidArgumentError(
            f"{path} is a notebook for {language[:_NAME_LENGTH]!r}; only notebooks for Python can be run."
        )
    cells = notebook.get("cells")
    if not isinstance(cells, list) or not all(_is_cell(cell) for cell in cast("list[object]", cells)):
        raise InvalidArgumentError(f"{path} is not a notebook: its cells cannot be read.")
    sources = [_source(cell) for cell in cast("list[dict[str, object]]", cells) if cell["cell_type"] == "code"]
    return next((source for source in sources if source.strip()), "").encode("utf-8", "replace")


def executed_name(path: Path) -> str:
    """Return under which name a notebook is kept with its outputs."""
    return path.name if is_artifact_name(path.name) else _OTHER_NAME


def _language(metadata: dict[str, object]) -> str:
    for place, key in (("language_info", "name"), ("kernelspec", "language")):
        name = _table(metadata.get(place)).get(key)
        if isinstance(name, str) and name:
            return name
    return ""


def _is_cell(value: object) -> bool:
    cell = _table(value)
    source = cell.get("source")
    lines = cast("list[object]", source) if isinstance(source, list) else [source]
    return isinstance(cell.get("cell_type"), str) and all(isinstance(line, str) for line in lines)


def _source(cell: dict[str, object]) -> str:
    source = cell["source"]
    return "".join(cast("list[str]", source)) if isinstance(source, list) else str(source)


def _table(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}
