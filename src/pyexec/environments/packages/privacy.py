"""Whether packages may come from where not everybody may look: then what is made of them is not shared."""

from collections.abc import Iterable, Mapping
from pathlib import Path

_VARIABLES = ("UV_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX", "UV_FIND_LINKS")
_SETTINGS = (b"index", b"find-links")


def has_index_of_its_own(environ: Mapping[str, str], files: Iterable[Path]) -> bool:
    """Tell whether uv is set to any index but the public one, which may be private. Reads its settings.

    Args:
        environ: The variables that uv is started with; those of credentials begin like those of indexes.
        files: The files that uv takes settings from.
    """
    if any(value and name.startswith(_VARIABLES) for name, value in environ.items()):
        return True
    return any(word in _content(file) for file in files for word in _SETTINGS)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:
        return b""
