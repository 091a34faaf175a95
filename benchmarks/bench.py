"""What every benchmark gets: the product as installed, a place on disk, and how thorough to be."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from installation import Installation
from mcp_client import McpClient

HERE = Path(__file__).resolve().parent
WARM_UPS = 3


@dataclass(frozen=True, slots=True)
class Bench:
    """One run of the benchmarks.

    Attributes:
        installation: What is measured.
        folder: Where files may be put, on the disk that is measured.
        programs: A copy of the programs that are run; outside of this repository, whose dependencies would count.
        quick: Whether fewer samples will do.
    """

    installation: Installation
    folder: Path
    programs: Path
    quick: bool

    def rounds(self, *, full: int, quick: int) -> int:
        """Return how many samples to take."""
        return quick if self.quick else full

    def new_folder(self, name: str) -> Path:
        """Make an empty folder."""
        return Path(mkdtemp(prefix=f"{name}-", dir=self.folder))

    def serve(self, home: Path, **settings: str) -> McpClient:
        """Start a server with this state folder and these variables."""
        environ = self.installation.environ(PYEXEC_HOME=str(home), **settings)
        return McpClient([self.installation.pyexec, "serve"], environ, home / "stderr.log")

    def greet(self, client: McpClient) -> None:
        """Greet a server and have it run a program a few times, so that all it loads later is loaded."""
        client.initialize()
        client.initialized()
        for _call in range(WARM_UPS):
            client.call("run_script_in_dir", **self.hello())

    def hello(self, **more: Any) -> dict[str, Any]:
        """Return the arguments of a call that runs the hello script as plain Python."""
        return {"directory": str(self.programs), "script_path": "hello.py", "use_uv": False, **more}
