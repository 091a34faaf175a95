"""Runs a notebook, cell by cell: `python notebook.py NOTEBOOK [ARGS]...`, with the nbclient of that Python.

Text goes to stdout and stderr as the cells put it out, pictures become files in the folder `PYEXEC_ARTIFACTS`, and so
does the notebook with all outputs, whatever happens: it is written at the start, while cells run, and at the end.
The kernel runs on the same Python, and ends with this process.
"""

import asyncio
import base64
import binascii
import functools
import importlib
import io
import json
import logging
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any, BinaryIO, TextIO, cast

SAVE_SECONDS = 2.0
INTERRUPT_SECONDS = 0.4
START_SECONDS = 600
LAST_OUTPUT_SECONDS = 60
LARGEST_PICTURE = 16 * 1024 * 1024
MOST_PICTURES = 100
LONGEST_SOCKET = 90
LOG_CHARACTERS = 4000
OTHER_NAME = "notebook.ipynb"
_ANSI = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_PICTURES = {"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/svg+xml": ".svg"}
_TEXTS = ("text/plain", "text/markdown", "text/latex")
_SET_ARGUMENTS = "__import__('sys').argv[:] = __import__('json').loads({!r})"


class Told:
    """What the readers of the two streams are told, with the pictures that are saved on the way."""

    def __init__(self, folder: str, total: int) -> None:
        self._folder = folder
        self._total = total
        self._number = 0
        self._in_cell = 0
        self._pictures = 0
        self._in_line: set[TextIO] = set()

    def start(self, number: int) -> None:
        """Say which cell comes."""
        self._number, self._in_cell = number, 0
        self._say(f"::progress {number - 1}/{self._total} cell {number} of {self._total}\n", sys.stderr)

    def finish(self) -> None:
        """Say that no more cells come."""
        self._say(f"::progress {self._total}/{self._total} done\n", sys.stderr)

    def output(self, output: "dict[str, Any]") -> None:
        """Pass on one output of the cell."""
        kind = output.get("output_type")
        if kind == "stream":
            to = sys.stderr if output.get("name") == "stderr" else sys.stdout
            self._say(str(output.get("text", "")), to, line=False)
        elif kind == "error":
            self._say(self._error(output), sys.stderr)
        else:
            self._show(output.get("data") or {})

    def problem(self, text: str) -> None:
        """Say what went wrong, not by the user's code."""
        self._say(f"Cell {self._number} of {self._total}: {text}\n" if self._number else f"{text}\n", sys.stderr)

    def _show(self, data: "dict[str, Any]") -> None:
        for media_type in _TEXTS:
            if media_type in data:
                self._say(f"{_joined(data[media_type])}\n", sys.stdout)
                break
        else:
            if not any(media_type in data for media_type in _PICTURES):
                self._say(f"[{', '.join(map(str, data)) or 'nothing'}: in the notebook]\n", sys.stdout)
        for media_type, suffix in _PICTURES.items():
            if media_type in data:
                where = self._picture(media_type, suffix, _joined(data[media_type]))
                self._say(f"[{media_type}: {where}]\n", sys.stdout)

    def _picture(self, media_type: str, suffix: str, data: str) -> str:
        """Save a picture; return where it is."""
        self._in_cell += 1
        try:
            content = data.encode("utf-8", "replace") if suffix == ".svg" else base64.b64decode(data)
        except (ValueError, binascii.Error):
            return "damaged"
        self._pictures += 1
        if self._pictures > MOST_PICTURES or len(content) > LARGEST_PICTURE:
            return "in the notebook only"
        name = f"cell-{self._number}-{self._in_cell}{suffix}"
        try:
            write(os.path.join(self._folder, name), content)
        except OSError as error:
            return f"not saved, {error.strerror}"
        return address(name)

    def _error(self, output: "dict[str, Any]") -> str:
        """Return a traceback as Python writes them: indented, and the exception in a line of its own at the end."""
        name, value = str(output.get("ename")), str(output.get("evalue"))
        where = f"Cell {self._number} of {self._total}"
        if name == "SystemExit":
            return f"{where} ended the notebook: {name}: {value}\n"
        last = f"{name}: {value}".rstrip()
        text = _ANSI.sub("", "\n".join(map(str, output.get("traceback") or ())))
        frames = text.rstrip().removesuffix(last).rstrip()
        lines = [
            f"  {line}".rstrip()
            for line in frames.split("\n")
            if line.strip("-") and not line.rstrip().endswith("Traceback (most recent call last)")
        ]
        head = [f"{where} failed.", "Traceback (most recent call last):"]
        return "\n".join([*head, *lines, last if value else name]) + "\n"

    def _say(self, text: str, to: TextIO, *, line: bool = True) -> None:
        """Write; what is a line of ours starts a line."""
        if text:
            text = f"\n{text}" if line and to in self._in_line else text
            (self._in_line.discard if text.endswith("\n") else self._in_line.add)(to)
        to.write(text)
        to.flush()


class Run:
    """One notebook, on its way through its kernel."""

    def __init__(self, path: str, args: "list[str]", folder: str) -> None:
        nbformat: Any = importlib.import_module("nbformat")
        self._notebook: Any = nbformat.reads(_completed(path), as_version=4)
        self._written: Callable[[Any], str] = nbformat.writes
        self._arguments = [path, *args]
        self._folder = folder
        name = os.path.basename(path)
        self._saved_as = os.path.join(folder, name if is_plain(name) else OTHER_NAME)
        self._save_at = 0.0
        self._save_planned: asyncio.TimerHandle | None = None
        self._code: list[tuple[int, Any]] = []
        for index, cell in enumerate(self._notebook.cells):
            if cell.cell_type == "code":
                # What stands there from another time is not of this run.
                cell.outputs, cell.execution_count = [], None
                if cell.source.strip():
                    self._code.append((index, cell))
        self._told = Told(folder, len(self._code))
        self._client: Any = None
        self._kernel_log = os.devnull
        self._process: Any = None
        self._stopped: int | None = None
        self._leaving = False
        self._task: asyncio.Task[None] | None = None

    def run(self) -> int:
        """Run all cells; return the exit code, or the signal that ended the kernel as a negative number."""
        exceptions: Any = importlib.import_module("nbclient.exceptions")
        self.save()
        scratch = _scratch(self._folder)
        self._kernel_log = os.path.join(scratch, "log")
        try:
            # What the kernel's children put on its streams comes through its messages too: here it would come twice.
            with open(self._kernel_log, "wb") as log:
                asyncio.run(self._run(scratch, log))
            code = 0
        except exceptions.CellExecutionError as error:
            code = _exit_code(error)
        except exceptions.DeadKernelError:
            code = self._of_dead_kernel()
        except RuntimeError as error:
            if self._stopped is None:
                with open(self._kernel_log, encoding="utf-8", errors="replace") as log:
                    self._told.problem(f"The kernel could not be used: {error}\n{log.read()[-LOG_CHARACTERS:]}")
            code = 1
        except (KeyboardInterrupt, asyncio.CancelledError):
            code = 128 + signal.SIGINT
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
            self.save()
        return code if self._stopped is None else 128 + self._stopped

    def save(self) -> None:
        """Write the notebook as it stands; the next time not before that is worth the while."""
        started = time.monotonic()
        # A lone surrogate in a JSON text becomes its own escape.
        content = self._written(self._notebook).encode("utf-8", "backslashreplace")
        try:
            write(self._saved_as, content)
        except OSError as error:
            self._told.problem(f"The notebook with its outputs could not be saved: {error.strerror}.")
        self._save_planned = None
        ended = time.monotonic()
        self._save_at = ended + max(SAVE_SECONDS, 20 * (ended - started))

    def _save_soon(self) -> None:
        """Save what is new, at once or when the time has come."""
        if self._save_planned is None:
            wait = max(0.0, self._save_at - time.monotonic())
            self._save_planned = asyncio.get_running_loop().call_later(wait, self.save)

    async def _run(self, scratch: str, log: BinaryIO) -> None:
        nbclient: Any = importlib.import_module("nbclient")
        self._task = asyncio.current_task()
        client = self._client = nbclient.NotebookClient(
            self._notebook,
            km=_kernel_manager(scratch),
            timeout=None,
            startup_timeout=START_SECONDS,
            iopub_timeout=LAST_OUTPUT_SECONDS,
        )
        process = client.process_message

        def process_message(message: Any, cell: Any, index: int) -> Any:
            output = process(message, cell, index)
            if output is not None:
                self._told.output(output)
                self._save_soon()
            return output

        client.process_message = process_message
        # With this variable ipykernel would leave out what children write.
        env = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
        streams = {"stdout": log, "stderr": log}
        async with client.async_setup_kernel(cleanup_kc=True, cwd=os.getcwd(), env=env, **streams):
            self._process = client.km.provisioner.process
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGINT, self._interrupt)
            loop.add_signal_handler(signal.SIGTERM, self._stop, signal.SIGTERM)
            try:
                await self._run_cells(client)
            finally:
                self._leaving = True

    async def _run_cells(self, client: Any) -> None:
        await self._make_ready(client)
        for number, (index, cell) in enumerate(self._code, 1):
            self._told.start(number)
            await client.async_execute_cell(cell, index)
            self._save_soon()
        self._told.finish()
        client.set_widgets_metadata()

    async def _make_ready(self, client: Any) -> None:
        information = await client.async_wait_for_reply(client.kc.kernel_info())
        if information is not None and "language_info" in information["content"]:
            self._notebook.metadata["language_info"] = information["content"]["language_info"]
        code = _SET_ARGUMENTS.format(json.dumps(self._arguments))
        await client.async_wait_for_reply(client.kc.execute(code, silent=True, store_history=False))

    def _interrupt(self) -> None:
        """Let the cell say where it was; then it is over."""
        if self._stopped is not None:
            return
        self._stopped = signal.SIGINT
        self.save()
        asyncio.get_running_loop().call_later(INTERRUPT_SECONDS, self._stop, signal.SIGINT)
        self._client.shutdown_kernel = "immediate"
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGINT)

    def _stop(self, number: int) -> None:
        self._stopped = self._stopped or number
        self._client.shutdown_kernel = "immediate"
        if self._task is not None and not self._leaving:
            self._task.cancel()

    def _of_dead_kernel(self) -> int:
        """Say that the kernel ended by itself; return how, a signal as a negative number."""
        if self._stopped is None:
            self._told.problem("the notebook's kernel died.")
        # It has been waited for by its manager.
        code = getattr(self._process, "returncode", None)
        return code if isinstance(code, int) and code else 1


def write(path: str, content: bytes) -> None:
    """Write a file whole or not at all."""
    folder, name = os.path.split(path)
    part = os.path.join(folder, f".{name}.part")
    with open(part, "wb", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(content)
    os.replace(part, path)


def address(name: str) -> str:
    """Return how a client reads a file of this execution."""
    return f"job-file://{os.environ.get('PYEXEC_EXECUTION_ID', '')}/{name}"


def is_plain(name: str) -> bool:
    """Tell whether a file of that name can be handed out."""
    return len(name) <= 200 and not name.startswith(".") and name.isprintable()


def main() -> int:
    """Run the notebook that the command line names."""
    if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
        del sys.path[0]  # Else our modules would hide those of others.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    warnings.simplefilter("ignore")
    logging.disable()
    try:
        for name in ("nbclient", "ipykernel"):
            importlib.import_module(name)
    except ImportError as error:
        why = f"The Python that runs the notebook ({sys.executable}) needs the packages nbclient and ipykernel."
        sys.stderr.write(f"{type(error).__name__}: {error}\n{why}\n")
        return 1
    code = Run(sys.argv[1], sys.argv[2:], os.environ["PYEXEC_ARTIFACTS"]).run()
    if code < 0:  # The kernel's end is ours.
        with suppress(OSError):
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return abs(code)


def _completed(path: str) -> str:
    """Return a notebook with the parts that are always there, and that people who write one by hand leave out."""
    with open(path, "rb") as file:
        notebook: dict[str, Any] = json.loads(file.read().decode("utf-8-sig"))
    notebook = {"metadata": {}, "nbformat_minor": 4, **notebook}
    empty: dict[str, Any] = {"metadata": {}, "outputs": [], "execution_count": None}
    notebook["cells"] = [
        {**(empty if cell["cell_type"] == "code" else {"metadata": {}}), **cell} for cell in notebook["cells"]
    ]
    return json.dumps(notebook)


def _kernel_manager(scratch: str) -> Any:
    """Return a manager of kernels that knows one: this Python. The sockets lie where nobody else comes."""
    kernel = os.path.join(scratch, "python3")
    os.mkdir(kernel)
    command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    with open(os.path.join(kernel, "kernel.json"), "w", encoding="utf-8") as file:
        json.dump({"argv": command, "display_name": "Python 3", "language": "python"}, file)
    jupyter_client: Any = importlib.import_module("jupyter_client")
    kernelspec: Any = importlib.import_module("jupyter_client.kernelspec")
    manager = jupyter_client.AsyncKernelManager(
        kernel_name="python3",
        kernel_spec_manager=kernelspec.KernelSpecManager(kernel_dirs=[scratch], ensure_native_kernel=False),
        transport="ipc",
        connection_file=os.path.join(scratch, "k.json"),
    )
    # No output is lost when the kernel is faster than we are: messages wait here, however many there are.
    context = importlib.import_module("zmq.asyncio").Context()
    context.rcvhwm = context.linger = 0
    manager.client = functools.partial(manager.client, context=context)
    return manager


def _scratch(folder: str) -> str:
    """Make a folder for the kernel's sockets, whose paths must be short."""
    inside = len(os.path.join(folder, ".kernel-12345678", "k-ipc-5")) < LONGEST_SOCKET
    return tempfile.mkdtemp(prefix=".kernel-" if inside else "pyexec-", dir=folder if inside else None)


def _exit_code(error: Any) -> int:
    """Return 1, or what the cell gave to `sys.exit`."""
    if getattr(error, "ename", "") != "SystemExit":
        return 1
    value = str(getattr(error, "evalue", "")).strip()
    if value in ("", "None"):
        return 0
    return int(value) & 255 if value.lstrip("-").isdigit() else 1


def _joined(value: Any) -> str:
    return "".join(map(str, cast("list[Any]", value))) if isinstance(value, list) else str(value)


if __name__ == "__main__":
    sys.exit(main())
