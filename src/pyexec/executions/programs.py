"""What a path names that somebody wants to run: a script, a package, an archive, a notebook."""

import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path

from pyexec.domain.errors import InvalidArgumentError
from pyexec.domain.executions import Harness
from pyexec.executions import notebooks
from pyexec.sandbox.programs import NOTEBOOK

_MAIN = "__main__.py"
_COMPILED_MAIN = "__main__.pyc"
_ARCHIVES = frozenset({".zip", ".pyz", ".pyzw"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is run.

    Attributes:
        header_source: The source that may have a header.
        harness: What we put around it, so that Python can run it.
        tools: Packages that it is run with, besides its own.
        result: The name of the file that comes of it.
    """

    header_source: bytes = field(default=b"", repr=False)
    harness: Harness | None = None
    tools: tuple[str, ...] = ()
    result: str | None = None


def read_program(path: Path, most: int) -> Program:
    """Look at what a path names; of an archive at most so many bytes are unpacked. Blocks on the disk.

    Raises:
        InvalidArgumentError: Python has nothing to start there, or it is a notebook that cannot be run.
        OSError: It cannot be read.
    """
    suffix = path.suffix.lower()
    if path.is_dir():
        return Program(header_source=_of_folder(path))
    if suffix in _ARCHIVES:
        return Program(header_source=_of_archive(path, most))
    content = path.read_bytes()
    if suffix == notebooks.SUFFIX:
        return Program(
            header_source=notebooks.read_notebook(path, content),
            harness=Harness(options=(str(NOTEBOOK),)),
            tools=notebooks.TOOLS,
            result=notebooks.executed_name(path),
        )
    return Program(header_source=content)


def _of_folder(folder: Path) -> bytes:
    main = folder / _MAIN
    if main.is_file():
        return main.read_bytes()
    if (folder / _COMPILED_MAIN).is_file():
        return b""
    package = (folder / "__init__.py").is_file()
    raise InvalidArgumentError(
        f"script_path {folder} is a folder without a {_MAIN}, so there is nothing to start in it.",
        hint="Name a file in it" + (f", or run one of its modules: module='{folder.name}.…'." if package else "."),
    )


def _of_archive(path: Path, most: int) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive:
            names = frozenset(archive.namelist())
            if _MAIN in names:
                with archive.open(_MAIN) as main:
                    return main.read(most)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise InvalidArgumentError(f"script_path {path} is not an archive that Python can run: {error}.") from None
    if _COMPILED_MAIN in names:
        return b""
    raise InvalidArgumentError(
        f"script_path {path} is an archive without a {_MAIN} at its top, so there is nothing to start in it.",
        hint="`python -m zipapp FOLDER --main package.module:function` writes one.",
    )
