"""Codes for tokens at the identity provider, through HTTP: how many a second, and what one costs, against an endpoint
of the same framework that only reads the form and answers; and a sign-in against its hash."""

import base64
import hashlib
import http.client
import re
import secrets
import socket
import statistics
import subprocess
import time
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

from bench import HERE, Bench
from figures import Figure, Target, in_milliseconds, interleave
from installation import BenchmarkError, Installation, install_identity_provider
from processes import cpu_seconds

CONNECTIONS = 4
AT_LEAST = 100
MOST_CPU = 0.010
RESOURCE, CALLBACK = "https://mcp.example.com/mcp", "https://app.example.com/callback"
PASSWORD = "correct horse battery staple"
FORM = {"content-type": "application/x-www-form-urlencoded"}
START_SECONDS = 60.0
SIGN_INS = 5
BESIDE_THE_HASH = 20.0
"""Milliseconds."""
HASH = f"""
import time
from pyexec_idp.users.passwords import Passwords
passwords = Passwords()
kept = passwords.hash({PASSWORD!r})
took = []
for _round in range({SIGN_INS}):
    started = time.process_time()
    assert passwords.check({PASSWORD!r}, kept)[0]
    took.append(time.process_time() - started)
print(sorted(took)[len(took) // 2])
"""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one round took: wall and processor time of one request, in seconds."""

    wall: float
    cpu: float


def measure(bench: Bench) -> list[Figure]:
    folder = bench.new_folder("provider")
    installation = install_identity_provider(folder)
    rounds, at_a_time = bench.rounds(full=9, quick=3), bench.rounds(full=100, quick=40)
    with ExitStack() as stack:
        provider = stack.enter_context(_provider(installation, folder))
        bare = stack.enter_context(_bare(installation, folder))
        person = _Person(provider)
        taken: tuple[list[Taken], list[Taken]] = ([], [])

        def ours() -> float:
            forms = [person.exchange() for _code in range(at_a_time)]
            taken[0].append(_all(provider, forms))
            return taken[0][-1].wall

        def theirs() -> float:
            taken[1].append(_all(bare, [{"code": secrets.token_urlsafe(32)} for _form in range(at_a_time)]))
            return taken[1][-1].wall

        ours()
        theirs()
        for kept in taken:
            kept.clear()
        interleave(rounds, ours, theirs)
        signed_in, hashed = interleave(
            bench.rounds(full=7, quick=2),
            lambda: _sign_in_cpu(provider),
            lambda: float(_run([installation.python, "-c", HASH], installation.environ())),
        )
    own, other = taken
    a_second, cpu = 1 / statistics.median(one.wall for one in own), statistics.median(one.cpu for one in own)
    return [
        Figure(
            what=f"codes for tokens over {CONNECTIONS} connections, against a bare Starlette endpoint",
            value=a_second,
            baseline=1 / statistics.median(one.wall for one in other),
            unit="calls/s",
            target=Target(f">= {AT_LEAST}/s", a_second >= AT_LEAST),
            samples=len(own),
        ),
        Figure(
            what="codes for tokens: processor time of one, against the same",
            value=1000 * cpu,
            baseline=1000 * statistics.median(one.cpu for one in other),
            unit="ms",
            target=Target(f"<= {1000 * MOST_CPU:g} ms", cpu <= MOST_CPU),
            samples=len(own),
        ),
        in_milliseconds(
            "signing in: processor time, against checking the password alone (64 MiB, 3 passes, 1 lane)",
            signed_in,
            hashed,
            at_most=1.1,
            plus_milliseconds=BESIDE_THE_HASH,
        ),
    ]


def _sign_in_cpu(provider: "_Served") -> float:
    """Return the processor time that one sign-in costs, its page and the page after it included."""
    before = cpu_seconds(provider.pid)
    for _sign_in in range(SIGN_INS):
        _Person(provider)
    return (cpu_seconds(provider.pid) - before) / SIGN_INS


@dataclass(frozen=True, slots=True)
class _Served:
    """A server on this machine."""

    port: int
    pid: int
    client_id: str = ""

    def ask(self, method: str, path: str, form: Mapping[str, str] | None = None, **headers: str) -> "_Answer":
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        body = None if form is None else urlencode(form)
        connection.request(method, path, body, {**(FORM if form is not None else {}), **headers})
        answer = connection.getresponse()
        found = _Answer(answer.status, answer.read().decode(), answer.headers.get_all("set-cookie") or [])
        location = answer.headers.get("location")
        connection.close()
        return found if location is None else _Answer(found.status, location, found.cookies)


@dataclass(frozen=True, slots=True)
class _Answer:
    """An answer; of a redirect, where it leads."""

    status: int
    text: str
    cookies: Sequence[str]


class _Person:
    """Signs in once, allows the client once, and from then on gets a code for each request."""

    def __init__(self, provider: _Served) -> None:
        self._provider = provider
        self._cookies: dict[str, str] = {}
        self._go("GET", "/account")
        self._submit({"user": "ada", "password": PASSWORD})
        self._verifier = secrets.token_urlsafe(48)
        digest = hashlib.sha256(self._verifier.encode()).digest()
        query = {
            "response_type": "code",
            "client_id": provider.client_id,
            "redirect_uri": CALLBACK,
            "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode(),
            "code_challenge_method": "S256",
            "resource": RESOURCE,
        }
        self._ask = f"/authorize?{urlencode(query)}"
        if self._go("GET", self._ask).status == 200:  # Consent is asked for once.
            self._submit({"decision": "allow"})

    def exchange(self) -> dict[str, str]:
        """Return the form that changes a fresh code for tokens."""
        location = self._go("GET", self._ask).text
        return {
            "grant_type": "authorization_code",
            "code": parse_qs(urlsplit(location).query)["code"][0],
            "redirect_uri": CALLBACK,
            "client_id": self._provider.client_id,
            "code_verifier": self._verifier,
        }

    def _go(self, method: str, path: str, form: Mapping[str, str] | None = None) -> _Answer:
        cookies = "; ".join(f"{name}={value}" for name, value in self._cookies.items())
        answer = self._provider.ask(method, path, form, cookie=cookies)
        for line in answer.cookies:
            name, _, rest = line.partition("=")
            self._cookies[name] = rest.partition(";")[0]
        self._page = answer.text
        return answer

    def _submit(self, fields: Mapping[str, str]) -> None:
        action = re.search(r'action="([^"]+)"', self._page)
        hidden = re.findall(r'type="hidden" name="([^"]+)" value="([^"]*)"', self._page)
        if action is None:
            raise BenchmarkError(f"There is no form to submit: {self._page[:500]}")
        form = {**{name: unescape(value) for name, value in hidden}, **fields}
        answer = self._go("POST", urlsplit(action[1]).path, form)
        if answer.status != 303:
            raise BenchmarkError(f"A form was answered with {answer.status}: {answer.text[:500]}")


def _all(served: _Served, forms: Sequence[Mapping[str, str]]) -> Taken:
    """Post all forms over a few connections."""
    shares = [forms[number::CONNECTIONS] for number in range(CONNECTIONS)]
    before, started = cpu_seconds(served.pid), time.perf_counter()
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(partial(_post, served.port), shares))
    wall = time.perf_counter() - started
    return Taken(wall / len(forms), (cpu_seconds(served.pid) - before) / len(forms))


def _post(port: int, forms: Sequence[Mapping[str, str]]) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    for form in forms:
        connection.request("POST", "/token", urlencode(form), FORM)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise BenchmarkError(f"/token answered with {answer.status}: {body[:500]!r}")
    connection.close()


@contextmanager
def _provider(installation: Installation, folder: Path) -> Generator[_Served]:
    port = _free_port()
    program = str(Path(installation.python).with_name("pyexec-idp"))
    environ = installation.environ(
        PYEXEC_IDP_ISSUER=f"http://127.0.0.1:{port}", PYEXEC_IDP_HOME=str(folder / "home"), PYEXEC_IDP_PORT=str(port)
    )

    def command(*words: str, said: str = "") -> str:
        return _run([program, *words], environ, said)

    command("users", "add", "ada", "--password-stdin", said=f"{PASSWORD}\n")
    command("resources", "add", RESOURCE, "--scope", "python:execute=Run Python code")
    client_id = command("clients", "add", "Benchmark", "--public", "--redirect-uri", CALLBACK).split()[1]
    with _running([program, "serve"], environ, folder / "serve.log", port) as pid:
        yield _Served(port, pid, client_id)


def _run(words: Sequence[str], environ: Mapping[str, str], said: str = "") -> str:
    done = subprocess.run(words, env=environ, input=said, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode != 0:
        raise BenchmarkError(f"{' '.join(words)[:100]} failed: {done.stderr}")
    return done.stdout


@contextmanager
def _bare(installation: Installation, folder: Path) -> Generator[_Served]:
    port = _free_port()
    words = [installation.python, str(HERE / "programs" / "bare_web.py"), str(port)]
    with _running(words, installation.environ(), folder / "bare.log", port) as pid:
        yield _Served(port, pid)


@contextmanager
def _running(words: Sequence[str], environ: Mapping[str, str], log: Path, port: int) -> Generator[int]:
    with log.open("wb") as said, subprocess.Popen(words, env=environ, stdout=said, stderr=said) as process:
        try:
            _wait_for(port, process, log)
            yield process.pid
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionError:
            time.sleep(0.05)
        else:
            return
    raise BenchmarkError(f"A server did not start: {log.read_text('utf-8', 'replace')[-2000:]}")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
