"""Which Python a script runs on: what the call asks for and what the script says, brought together."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass

from pyexec.domain.errors import InterpreterNotFoundError, InvalidArgumentError
from pyexec.environments.interpreters import Interpreter, InterpreterFinder
from pyexec.environments.python_versions import OLDEST, parse_request, show
from pyexec.environments.uv import may_download_python


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The Python to use.

    Attributes:
        python: What to call it towards uv: the path of an interpreter, or a version for uv to download.
        interpreter: The interpreter; None when uv has to download it first.
    """

    python: str
    interpreter: Interpreter | None


def choose(
    finder: InterpreterFinder,
    environ: Mapping[str, str],
    *,
    argument: str | None,
    requires: str | None,
    requires_in: str,
    otherwise: str | None = None,
) -> Choice:
    """Choose an interpreter, or a version for uv to download when uv may and none is here that fits.

    Args:
        finder: Knows what is here.
        environ: The server's environment, for what uv may do.
        argument: What the call asks for; a version, a range or a path.
        requires: The range the script may run on; never left, whatever else is set.
        requires_in: How to call the place of `requires` in a message.
        otherwise: The version to use when nobody asks for any, if it is here.

    Raises:
        InvalidArgumentError: The argument has none of the allowed forms, or lies outside of `requires`.
        NotFoundError: The argument is a path with nothing there.
        InterpreterNotFoundError: None fits, and uv may not or cannot download one.
    """
    limit = None if requires is None else parse_request(requires, what=f"requires-python in {requires_in}")
    if argument is not None and argument.strip().startswith("/"):
        found = finder.find(argument)
        if limit is not None and not limit.accepts(found.version):
            raise _outside(f"{argument} (Python {show(found.version)})", limit.text, requires_in)
        return Choice(python=str(found.path), interpreter=found)
    asked = None if argument is None else parse_request(argument)
    if asked is not None and limit is not None:
        both = asked.narrowed(limit)
    else:
        both = asked or limit or parse_request(f">={OLDEST[0]}.{OLDEST[1]}")
    wanted = asked or limit
    try:
        found = _usual(finder, otherwise) if wanted is None else finder.find(wanted.text)
        if not both.accepts(found.version):
            found = finder.find(both.text)
    except InterpreterNotFoundError as error:
        if both.possible():
            if may_download_python(environ):
                return Choice(python=both.text, interpreter=None)
        elif asked is not None and limit is not None:
            raise _outside(asked.text, limit.text, requires_in) from error
        raise
    return Choice(python=str(found.path), interpreter=found)


def _usual(finder: InterpreterFinder, version: str | None) -> Interpreter:
    with suppress(InterpreterNotFoundError):
        if version is not None:
            return finder.find(version)
    return finder.find(None)


def _outside(argument: str, limit: str, limit_in: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"python_version {argument} does not fit requires-python {limit!r} in {limit_in}.",
        hint="Leave python_version out, or choose one in that range.",
    )
