"""Environments for tests: engines that use uv, builds that can be held up, wheels, projects and a package index."""

import base64
import io
import json
import os
import ssl
import subprocess
import sys
import tarfile
import tempfile
import threading
import zipfile
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from pyexec.domain.executions import Execution, ExecutionRequest
from pyexec.environments.orders import Answer
from pyexec.environments.store import MARKER, EnvironmentStore
from pyexec.environments.uv import find_uv
from pyexec.executions.observing import ExecutionObserver
from tests.helpers.processes import eventually, marked_with, name_of
from tests.integration.engine import Engine

SHOW = "import importlib.metadata as m, sys; print(*(f'{n}={m.version(n)}' for n in sys.argv[1:]))\n"
SEEN = "import importlib.util as u, sys; print(*(n for n in sys.argv[1:] if u.find_spec(n)))\n"
WHERE = "import sys; print(sys.prefix)\n"

# Static metadata: it is built once, when it is installed, and not to find out what it needs.
_SOURCE = """\
[project]
name = "{name}"
version = "{version}"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
_GATED = _SOURCE.format(name="gated", version="1")
_GATED_BACKEND = """\
import os, shutil

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with open({begun!r}, "a") as file:
        file.write(f"{{os.getpid()}}\\n")
    os.read(os.open({fifo!r}, os.O_RDONLY), 1)
    return os.path.basename(shutil.copy({wheel!r}, wheel_directory))
"""


class UvEngine(Engine):
    """An engine whose programs are run with uv, unless they say otherwise, and by default in `directory`."""

    def __init__(self, home: Path, observer: ExecutionObserver | None = None, /, **settings: object) -> None:
        super().__init__(home, observer, **settings)
        self._others: set[str] = set()

    def begin(self) -> None:
        """Go on in an empty directory; what environments there are by now are no longer told."""
        self.directory = Path(tempfile.mkdtemp(dir=self.home.parent / "work"))
        self._others = set(self.store.digests())

    async def submit(self, code: str = "", /, **request: Any) -> Execution:
        """Start a program; `script` names a file of the directory in place of code."""
        given: dict[str, Any] = {"use_uv": True, "directory": str(self.directory), **request}
        for name in ("args", "dependencies", "constraints"):
            if name in given:
                given[name] = tuple(given[name])
        script = given.pop("script", None)
        if script is None:
            return await super().submit(code, **given)
        return await self.submit_file(script, **given)

    async def run(self, code: str = "", /, **request: Any) -> Execution:
        """Run a program to its end."""
        return await super().run(code, **request)

    async def submit_file(self, script: str | Path, **given: Any) -> Execution:
        """Start a script that lies in a file."""
        return await self.executions.submit(self.principal, ExecutionRequest(script_path=str(script), **given))

    async def answer(self, execution: Execution) -> Answer:
        """Return what it runs in."""
        return await self.executions.environment_of(execution)

    async def printed_by(self, code: str = "", /, **request: Any) -> str:
        """Run it to its end, which must be a good one; return what it printed."""
        execution = await self.run(code, **request)
        assert execution.state == "completed", (
            execution.outcome,
            self.prepared(execution),
            await self.stderr(execution),
        )
        return (await self.stdout(execution)).rstrip("\n")

    async def failure(self, code: str = "print('ran')", /, **request: Any) -> str:
        """Run what cannot be prepared; return the reason, and see that nothing ran."""
        execution = await self.run(code, **request)
        outcome = execution.outcome
        assert outcome is not None
        assert (execution.state, outcome.kind, outcome.exit_code) == ("failed", "environment_failed", None), outcome
        assert execution.started_at is None
        assert await self.stdout(execution) == ""
        assert outcome.reason is not None
        return outcome.reason

    def prepared(self, execution: Execution) -> list[str]:
        """Return what was said while its environment was made; nothing when none had to be made."""
        path = self.folder(execution) / "prepare"
        return path.read_text("utf-8").splitlines() if path.exists() else []

    @property
    def store(self) -> EnvironmentStore:
        """The environments on disk."""
        return EnvironmentStore(self.home / "environments")

    def folders(self) -> list[str]:
        """Return the environments there are, those of tests before this one left out."""
        return [digest for digest in self.store.digests() if digest not in self._others]

    def complete(self) -> list[str]:
        """Return those of them that count."""
        return [digest for digest in self.folders() if (self.store.folder(digest) / MARKER).exists()]

    def builder(self, execution: Execution) -> int:
        """Return the pid of the program that makes its environment."""
        return self.process(execution, lambda command: "pyexec.environments.build" in command)

    def process(self, execution: Execution, is_it: Callable[[str], bool]) -> int:
        """Return the pid of the one process of an execution with such a command line."""
        (pid,) = eventually(lambda: [pid for pid in marked_with(execution.id) if is_it(name_of(pid))])
        return pid


class Gate:
    """A local package whose build says that it has begun, and waits until it may go on."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.project = folder / "gated"
        self._begun = folder / "begun"
        fifo = folder / "fifo"
        os.mkfifo(fifo)
        self._fd = os.open(fifo, os.O_RDWR)
        content = make_wheel(folder, "gated", "1", {"gated.py": "VALUE = 'gated'\n"})
        backend = _GATED_BACKEND.format(begun=str(self._begun), fifo=str(fifo), wheel=str(content))
        write(self.project, {"pyproject.toml": _GATED, "backend.py": backend})

    def begun(self) -> list[int]:
        """Return the pids of the builds that have begun, whatever became of them."""
        return [int(line) for line in self._begun.read_text().splitlines()] if self._begun.exists() else []

    def wait(self, builds: int = 1) -> list[int]:
        """Wait until so many builds have begun."""
        return eventually(lambda: pids if len(pids := self.begun()) >= builds else [])

    def open(self) -> None:
        """Let all go on, those that come later too."""
        os.write(self._fd, b"x" * 100)

    def close(self) -> None:
        """Let go of it."""
        os.close(self._fd)


def write(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below a folder; return the folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return folder


def listing(folder: Path) -> list[str]:
    """Return everything below a folder with its size and when it was changed."""
    found: list[str] = []
    for path in sorted(folder.rglob("*")):
        status = path.lstat()
        found.append(f"{path.relative_to(folder)} {status.st_size} {status.st_mtime_ns}")
    return found


def project(
    folder: Path,
    name: str,
    dependencies: Collection[str] = (),
    *,
    modules: Mapping[str, str] | None = None,
    more: str = "",
    backend: str | None = "uv_build",
) -> Path:
    """Write a project with a `src` layout; without a backend it is no package."""
    build = {
        None: "",
        "uv_build": "[build-system]\nrequires = ['uv_build>=0.8']\nbuild-backend = 'uv_build'\n",
        "setuptools": "[build-system]\nrequires = ['setuptools']\nbuild-backend = 'setuptools.build_meta'\n",
        "hatchling": "[build-system]\nrequires = ['hatchling']\nbuild-backend = 'hatchling.build'\n",
        "flit_core": "[build-system]\nrequires = ['flit_core']\nbuild-backend = 'flit_core.buildapi'\n",
    }[backend]
    head = f"[project]\nname = '{name}'\nversion = '1'\ndescription = 'x'\nrequires-python = '>=3.8'\n"
    text = f"{head}dependencies = {list(dependencies)}\n{build}{more}"
    files = {f"src/{path}": content for path, content in (modules or {}).items()}
    return write(folder, {"pyproject.toml": text, **files})


def uv(*arguments: str, cwd: Path) -> str:
    """Run uv by hand, as somebody does who prepares a project."""
    program = find_uv(os.environ, Path(sys.prefix))
    return subprocess.run([program, *arguments], cwd=cwd, check=True, capture_output=True, text=True).stdout


def make_wheel(
    folder: Path, name: str, version: str, files: Mapping[str, str | bytes], requires: Collection[str] = ()
) -> Path:
    """Make a wheel in a folder."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    path.write_bytes(wheel_bytes(name, version, files, requires))
    return path


def wheel_bytes(name: str, version: str, files: Mapping[str, str | bytes], requires: Collection[str] = ()) -> bytes:
    """Return a wheel."""
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    info = f"{name}-{version}.dist-info"
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
        wheel.writestr(f"{info}/METADATA", metadata + "".join(f"Requires-Dist: {one}\n" for one in requires))
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return buffer.getvalue()


class Index:
    """A package index on this machine: `/simple/NAME/` and `/files/FILE`, behind a user and a password if need be."""

    def __init__(self, port: int, user: str | None, password: str | None) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.files: dict[str, bytes] = {}
        self.tree: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.refused: list[str] = []
        self.reached = threading.Event()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self._expected = None
        if user is not None:
            self._expected = f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"

    def add(self, name: str, version: str, files: Mapping[str, str | bytes] | None = None) -> None:
        """Put a package into it."""
        content = wheel_bytes(name, version, files or {f"{name}.py": f"VERSION = {version!r}\n"})
        self.files[f"{name}-{version}-py3-none-any.whl"] = content

    def add_source(self, name: str, version: str, scratch: Path) -> None:
        """Put a package into it that has no wheel; it brings along what builds it."""
        wheel = make_wheel(scratch, name, version, {f"{name}.py": ""})
        metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        files = {"pyproject.toml": _SOURCE.format(name=name, version=version), "PKG-INFO": metadata}
        files["backend.py"] = (
            f"import os, shutil\ndef build_wheel(to, *rest): return os.path.basename(shutil.copy({str(wheel)!r}, to))\n"
        )
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
            for path, text in files.items():
                member = tarfile.TarInfo(f"{name}-{version}/{path}")
                member.size = len(text.encode())
                archive.addfile(member, io.BytesIO(text.encode()))
        self.files[f"{name}-{version}.tar.gz"] = buffer.getvalue()

    def add_repository(self, name: str, project: Mapping[str, str], scratch: Path) -> None:
        """Put a git repository into it, at `/NAME.git`, as any web server would hand it out."""
        work, bare = scratch / "work", scratch / "bare.git"
        work.mkdir(parents=True)
        for file, text in project.items():
            (work / file).write_text(text)
        author = ("-c", "user.name=a", "-c", "user.email=a@b")
        for command in (
            ("init", "--quiet", str(work)),
            ("-C", str(work), "add", "."),
            ("-C", str(work), *author, "commit", "--quiet", "--message", "first"),
            ("clone", "--quiet", "--bare", str(work), str(bare)),
            ("-C", str(bare), "update-server-info"),
        ):
            subprocess.run(["git", *command], check=True)
        for path in bare.rglob("*"):
            if path.is_file():
                self.tree[f"/{name}.git/{path.relative_to(bare)}"] = path.read_bytes()

    def hold(self) -> None:
        """Answer nobody until `may_answer` is set; `reached` tells when somebody asks."""
        self.reached.clear()
        self.may_answer.clear()

    def answer(self, path: str, authorization: str | None) -> tuple[int, bytes]:
        """Answer a request."""
        if self._expected is not None and authorization != self._expected:
            self.refused.append(path)
            return 401, b""
        self.asked.append(path)
        self.reached.set()
        self.may_answer.wait(30)
        path = "/" + path.split("://")[-1].partition("/")[2]  # Somebody may ask it as a proxy, with a whole URL.
        path = path.partition("?")[0]
        if path in self.tree:
            return 200, self.tree[path]
        name = unquote(path.rstrip("/").rpartition("/")[2])
        if path.startswith("/files/"):
            return (200, self.files[name]) if name in self.files else (404, b"")
        links = [
            f'<a href="/files/{file}">{file}</a>'
            for file in self.files
            if file.replace("_", "-").startswith(f"{name}-")
        ]
        return (200, f"<html><body>{' '.join(links)}</body></html>".encode()) if links else (404, b"")


@contextmanager
def package_index(
    user: str | None = None, password: str | None = None, *, tls: ssl.SSLContext | None = None
) -> Generator[Index]:
    """Start an index."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body = index.answer(self.path, self.headers.get("Authorization"))
            self.send_response(status)
            if status == 401:
                self.send_header("WWW-Authenticate", 'Basic realm="x"')
            kind = "application/zip" if self.path.endswith(".whl") else "text/html"
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815 -- called so by its base class

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- called so by its base class
            return

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: Any, client_address: Any) -> None:
            return  # Whoever asked is gone.

    server = Quiet(("127.0.0.1", 0), Handler)
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    index = Index(server.server_address[1], user, password)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield index
    finally:
        index.may_answer.set()
        server.shutdown()
        thread.join()
        server.server_close()


def origin(engine: UvEngine, digest: str, name: str) -> dict[str, Any]:
    """Return what an installed package says about where it is from (PEP 610)."""
    (path,) = engine.store.folder(digest).glob(f"lib/python*/site-packages/{name}-*.dist-info/direct_url.json")
    return json.loads(path.read_text("utf-8"))
