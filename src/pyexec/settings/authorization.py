"""The variables by which an operator says whose tokens count."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from pyexec.domain.authorization import (
    ALGORITHMS,
    FIRST_SCOPES,
    LONGEST_REVOCATION,
    AuthorizationSettings,
    Introspection,
    IssuerPolicy,
    parse_identifier,
)
from pyexec.domain.errors import InvalidArgumentError
from pyexec.settings.reading import Variable, number

LARGEST_FILE = 64 * 1024
_SECRET = "PYEXEC_AUTH_INTROSPECTION_SECRET"  # noqa: S105
_SECRET_FILE = "PYEXEC_AUTH_INTROSPECTION_SECRET_FILE"  # noqa: S105
_CLIENT = "PYEXEC_AUTH_INTROSPECTION_CLIENT"
_POLICIES = "PYEXEC_AUTH_POLICIES"
_SCOPE = re.compile(r"[!#-\[\]-~]+")  # RFC 6749, section 3.3
_YES = {"yes": True, "no": False}


def _identifiers(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(parse_identifier(part) for part in text.split()))


def _file(text: str) -> Path:
    if not Path(text).is_absolute():
        raise ValueError(text)
    return Path(text)


def _scopes(text: str) -> tuple[str, ...]:
    if not all(_SCOPE.fullmatch(word) for word in text.split()):
        raise ValueError(text)
    return tuple(text.split())


def _yes(text: str) -> bool:
    if text.lower() not in _YES:
        raise ValueError(text)
    return _YES[text.lower()]


AUTH_VARIABLES: tuple[Variable, ...] = (
    Variable(
        name="PYEXEC_AUTH_ISSUERS",
        meaning="Whose access tokens count over HTTP; without any, and without policies, nobody is asked for a token.",
        default="none",
        allowed="https URLs (http on this machine) with spaces between them, each letter by letter as its issuer says",
        read=_identifiers,
        limit="auth_issuers",
    ),
    Variable(
        name="PYEXEC_AUTH_RESOURCE",
        meaning="The URL at which clients reach the server; tokens have to be for it.",
        default="where it listens",
        allowed="an https URL (http on this machine) without query",
        read=parse_identifier,
        limit="auth_resource",
    ),
    Variable(
        name=_POLICIES,
        meaning="A TOML file with what the tokens of each issuer must be like, where that is not the usual.",
        default="none",
        allowed="an absolute path",
        read=_file,
        limit="auth_policies",
    ),
    Variable(
        name=_CLIENT,
        meaning="As which client the one issuer is asked about tokens, so that revoked and opaque ones are known.",
        default="none: tokens count until they expire",
        allowed="the id of a client",
        read=str,
        limit="auth_introspection_client",
    ),
    Variable(
        name=_SECRET,
        meaning="The secret of that client.",
        default="none",
        allowed="a text",
        read=str,
        limit="auth_introspection_secret",
        secret=True,
    ),
    Variable(
        name=_SECRET_FILE,
        meaning="A file that holds that secret.",
        default="none",
        allowed="an absolute path",
        read=_file,
        limit="auth_introspection_secret_file",
    ),
    Variable(
        name="PYEXEC_AUTH_REVOCATION_SECONDS",
        meaning="How long the word of an issuer counts that a token was not revoked.",
        default="30",
        allowed=f"a number between 0 and {LONGEST_REVOCATION:g}",
        read=number(0, LONGEST_REVOCATION),
        limit="revocation",
    ),
    Variable(
        name="PYEXEC_AUTH_SKEW_SECONDS",
        meaning="By how much the clocks of issuers may differ from ours.",
        default="30",
        allowed="a number between 0 and 120",
        read=number(0, 120),
        limit="skew",
    ),
    Variable(
        name="PYEXEC_AUTH_FIRST_SCOPES",
        meaning="What clients without a token are told to ask for; they are told of more when a tool needs it.",
        default=" ".join(FIRST_SCOPES),
        allowed="scopes with spaces between them",
        read=_scopes,
        limit="first_scopes",
    ),
    Variable(
        name="PYEXEC_AUTH_DEVELOPMENT",
        meaning="Make a key and a token at the start, and print the token; on this machine only.",
        default="no",
        allowed="yes or no",
        read=_yes,
        limit="development",
    ),
)


def authorization_settings(given: Mapping[str, Any], environ: Mapping[str, str]) -> AuthorizationSettings:
    """Return the settings with what is given, by the names of their values.

    Raises:
        InvalidArgumentError: A file cannot be read, or values contradict each other.
    """
    issuers = {url: IssuerPolicy(url=url) for url in given.get("auth_issuers", ())}
    variables: list[str] = []
    if path := given.get("auth_policies"):
        issuers |= {policy.url: policy for policy in _policies(path, environ, variables)}
    client = given.get("auth_introspection_client")
    if client is not None:
        if len(issuers) != 1:
            raise InvalidArgumentError(
                f"{_CLIENT} is for exactly one issuer, and there are {len(issuers)}.", hint=f"Use {_POLICIES}."
            )
        ((url, policy),) = issuers.items()
        asked = Introspection(client_id=client, client_secret=_secret(given))
        issuers = {url: replace(policy, introspection=asked, opaque=True)}
    if sum(policy.opaque for policy in issuers.values()) > 1:
        raise InvalidArgumentError(
            "More than one issuer has opaque = true: a token that is no JWT would be shown to the wrong one.",
            hint=f"Say it for one issuer in {_POLICIES}.",
        )
    return AuthorizationSettings(
        resource=given.get("auth_resource"),
        issuers=tuple(issuers.values()),
        secret_variables=tuple(variables),
        **{name: given[name] for name in ("revocation", "skew", "first_scopes", "development") if name in given},
    )


def _secret(given: Mapping[str, Any]) -> str:
    secret: str | None = given.get("auth_introspection_secret")
    path: Path | None = given.get("auth_introspection_secret_file")
    if secret is not None and path is None:
        return secret
    if path is not None and secret is None:
        return _read_secret(path)
    raise InvalidArgumentError(f"{_CLIENT} needs {_SECRET} or {_SECRET_FILE}, one of them.")


def _read_secret(path: Path) -> str:
    secret = _text(path).strip()
    if not secret:
        raise InvalidArgumentError(f"The file {path} holds no secret.")
    return secret


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InvalidArgumentError(f"The file {path} cannot be read: {error.strerror}.") from None
    if len(data) > LARGEST_FILE:
        raise InvalidArgumentError(f"The file {path} is larger than {LARGEST_FILE} bytes.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"The file {path} is no UTF-8.") from None


def _policies(path: Path, environ: Mapping[str, str], variables: list[str]) -> list[IssuerPolicy]:
    """Read the file; note in `variables` those that it names for secrets."""
    try:
        document = tomllib.loads(_text(path))
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgumentError(f"The file {path} is no TOML: {error}.") from None
    entries = document.get("issuer")
    if set(document) != {"issuer"} or not isinstance(entries, list):
        raise InvalidArgumentError(f"The file {path} must have one or more [[issuer]] and nothing else.")
    read = [_Entry(path, cast("dict[str, Any]", entry), environ) for entry in cast("list[Any]", entries)]
    found = [entry.policy() for entry in read]
    variables += [entry.secret_variable for entry in read if entry.secret_variable is not None]
    if len({policy.url for policy in found}) != len(found):
        raise InvalidArgumentError(f"The file {path} names an issuer twice.")
    return found


class _Entry:
    """One `[[issuer]]` of the file."""

    def __init__(self, path: Path, values: dict[str, Any], environ: Mapping[str, str]) -> None:
        self._path = path
        self._left = dict(values)
        self._environ = environ
        self.secret_variable: str | None = None

    def policy(self) -> IssuerPolicy:
        """Read it."""
        url = self._take("url", str, None)
        usual = IssuerPolicy(url="")
        try:
            parse_identifier(url or "")
        except ValueError:
            raise self._wrong("url", "an https URL (http on this machine) without query") from None
        algorithms = self._texts("algorithms", usual.algorithms)
        if not algorithms or not set(algorithms) <= set(ALGORITHMS):
            raise self._wrong("algorithms", f"some of {', '.join(ALGORITHMS)}")
        found = IssuerPolicy(
            url=url or "",
            audience=self._texts("audience", ()),
            types=tuple(one.lower() for one in self._texts("types", usual.types)),
            algorithms=algorithms,
            client_claim=self._take("client_claim", str, usual.client_claim) or "",
            id_claim=self._take("id_claim", str, usual.id_claim) or "",
            scope_claim=self._take("scope_claim", str, usual.scope_claim) or "",
            private_network=bool(self._take("private_network", bool, False)),
            introspection=self._introspection(),
            opaque=bool(self._take("opaque", bool, False)),
        )
        if self._left:
            raise InvalidArgumentError(f"The file {self._path} says {', '.join(sorted(self._left))}, which is nothing.")
        if found.opaque and found.introspection is None:
            raise self._wrong("opaque", "false, unless there is an introspection_client")
        return found

    def _introspection(self) -> Introspection | None:
        client = self._take("introspection_client", str, None)
        endpoint = self._take("introspection_endpoint", str, None)
        file = self._take("introspection_secret_file", str, None)
        self.secret_variable = variable = self._take("introspection_secret_variable", str, None)
        if client is None:
            if endpoint or file or variable:
                raise self._wrong("introspection_client", "there when something else about introspection is")
            return None
        if (file is None) == (variable is None):
            raise self._wrong("introspection_secret_file", "there, or introspection_secret_variable, one of them")
        secret = _read_secret(Path(file)) if file is not None else self._environ.get(variable or "", "")
        if not secret:
            raise InvalidArgumentError(f"The variable {variable}, named in {self._path}, is not set.")
        return Introspection(client_id=client, client_secret=secret, endpoint=endpoint)

    def _take(self, name: str, kind: type, default: Any) -> Any:
        value = self._left.pop(name, default)
        if value is not None and not isinstance(value, kind):
            raise self._wrong(name, {str: "a text", bool: "true or false"}[kind])
        return value

    def _texts(self, name: str, default: tuple[str, ...]) -> tuple[str, ...]:
        value: Any = self._left.pop(name, default)
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in cast("list[Any]", value)):
            raise self._wrong(name, "a list of texts")
        return tuple(cast("list[str]", value))

    def _wrong(self, name: str, allowed: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"The file {self._path} has a wrong {name}; it must be {allowed}.")
