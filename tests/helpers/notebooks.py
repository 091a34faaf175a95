"""Writing notebooks, and reading those that were executed."""

import json
from pathlib import Path
from typing import Any


def write_notebook(path: Path, *cells: str, **changes: Any) -> Path:
    """Write a notebook with a heading and these code cells, which have outputs from another time.

    A cell that begins with `# may fail` has the tag that lets it.
    """
    old = {"output_type": "stream", "name": "stdout", "text": ["from another time\n"]}
    code = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {"tags": ["raises-exception"]} if source.startswith("# may fail") else {},
            "execution_count": 99,
            "outputs": [old],
            "source": source.splitlines(keepends=True),
        }
        for number, source in enumerate(cells)
    ]
    heading = {"cell_type": "markdown", "id": "heading", "metadata": {}, "source": "# A heading"}
    notebook = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [heading, *code], **changes}
    path.write_text(json.dumps(notebook, indent=1), "utf-8")
    return path


def outputs_of(text: str) -> list[str]:
    """Return the outputs of a notebook's code cells, each as text."""
    cells = json.loads(text)["cells"]
    return ["".join(map(_text, cell["outputs"])) for cell in cells if cell["cell_type"] == "code"]


def _text(output: dict[str, Any]) -> str:
    match output["output_type"]:
        case "stream":
            return "".join(output["text"])
        case "error":
            return f"{output['ename']}: {output['evalue']}"
        case _:
            return "".join(output["data"].get("text/html") or output["data"]["text/plain"])
