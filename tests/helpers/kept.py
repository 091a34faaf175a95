"""What takes a minute to make is kept for all clones that a user has, not only for the one whose tests have made it.

The code that is tested makes it. So each state of that code has a folder of its own, and makes its own things.
"""

import hashlib
import os
import shutil
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
_MAKERS = ROOT / "src" / "pyexec" / "environments"
_UNUSED_SECONDS = 7 * 24 * 3600.0


def keep(names: tuple[str, ...], here: Path) -> None:
    """Have folders of a cache lead to what is kept; where nothing can be kept they stay this clone's own."""
    try:
        folder = _folder()
        here.mkdir(parents=True, exist_ok=True)
        for name in names:
            (folder / name).mkdir(exist_ok=True)
            link = here / name
            if link.is_symlink():
                link.unlink()
            if not link.exists():
                link.symlink_to(folder / name)
    except OSError:
        return


def _folder() -> Path:
    """Return the folder for the code as it is; those that nobody has used for a week are removed."""
    state = hashlib.sha256()
    for path in sorted(_MAKERS.rglob("*.py")):
        state.update(path.read_bytes())
    base = _caches() / "pyexec-tests"
    folder = base / state.hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    os.utime(folder)
    for other in base.iterdir():
        if other.stat().st_mtime < time.time() - _UNUSED_SECONDS:
            shutil.rmtree(other, ignore_errors=True)
    return folder


def _caches() -> Path:
    """Return the user's folder for caches; that of root is the machine's, for sandboxes run as somebody else."""
    if os.geteuid() == 0:
        return Path("/var/cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
