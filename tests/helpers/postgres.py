"""PostgreSQL servers of the tests' own: in a folder of their own, on a unix socket, gone afterwards."""

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
USER = "pyexec"
PASSWORD = "pa/ss@of#records"
ENCODED = "pa%2Fss%40of%23records"


class Postgres:
    """A server. Whoever asks for a database gets the address of an empty schema."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._data = folder / "data"
        self._numbers = itertools.count(1)
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:  # It does not run as root.
            shutil.chown(folder, "postgres", "postgres")
            self._as = {"user": "postgres", "group": "postgres", "extra_groups": []}

    def create(self, *, durable: bool) -> None:
        """Make it; it is not started. One that is not `durable` is faster, and loses what it has with the machine."""
        password = self.folder / "password"
        password.write_text(f"{PASSWORD}\n")
        password.chmod(0o644)
        texts = ("-E", "UTF8", "--no-locale")
        self._run("initdb", "-A", "scram-sha-256", "--pwfile", str(password), "-U", USER, *texts, "--no-sync")
        with (self._data / "postgresql.conf").open("a") as file:
            file.write(
                f"unix_socket_directories = '{self.folder}'\nlisten_addresses = ''\nlc_messages = 'C'\n"
                f"fsync = {'on' if durable else 'off'}\nmax_wal_senders = 0\nwal_level = minimal\nautovacuum = off\n"
            )

    def start(self) -> None:
        """Start it; it takes connections when this returns."""
        self._run("pg_ctl", "-l", str(self.folder / "log"), "-w", "start")

    def stop(self) -> None:
        """Stop it as an operator does who is in a hurry: connections are cut."""
        self._run("pg_ctl", "-m", "fast", "-w", "stop")

    def kill(self) -> None:
        """Kill all of it as nothing else can be killed."""
        processes = self._processes()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(processes, 30)

    @contextmanager
    def silent(self) -> Generator[None]:
        """Have it do nothing at all meanwhile, though its connections stay."""
        processes = self._processes()
        for process in processes:
            process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            for process in processes:
                process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """End it, and remove it."""
        self.kill()
        shutil.rmtree(self.folder)

    def version(self) -> str:
        """Return which PostgreSQL it is."""
        return str(self.execute("SHOW server_version")[0][0])

    def database(self) -> str:
        """Return the address of an empty schema."""
        name = f"of_test_{next(self._numbers)}"
        self.execute(f"CREATE SCHEMA {name}")
        return self.address(name)

    def address(self, schema: str = "public", *, password: str = ENCODED) -> str:
        """Return the address of a schema, whether it is there or not."""
        return f"postgresql://{USER}:{password}@/postgres?host={self.folder}&options=-csearch_path%3D{schema}"

    def execute(self, query: str, address: str | None = None) -> list[Any]:
        """Do something as its administrator would, in the schema of an address; return the rows."""
        with psycopg.connect(address or self.address(), autocommit=True) as connection:
            found = connection.execute(query.encode())
            return found.fetchall() if found.description else []

    def _processes(self) -> list[psutil.Process]:
        try:
            first = psutil.Process(int((self._data / "postmaster.pid").read_text().split()[0]))
            return [first, *first.children(recursive=True)]
        except (OSError, psutil.NoSuchProcess):
            return []

    def _run(self, program: str, *words: str) -> None:
        command = [PROGRAMS[-1] / program, "-D", str(self._data), *words]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL, **self._as)


@contextmanager
def postgres_server(*, durable: bool = False) -> Generator[Postgres]:
    """Run a server; skip the test where PostgreSQL is not installed."""
    if not PROGRAMS:
        pytest.skip("needs PostgreSQL")
    server = Postgres(Path(tempfile.mkdtemp(prefix="pe-pg-", dir="/tmp")))
    try:
        server.create(durable=durable)
        server.start()
        yield server
    finally:
        server.close()
