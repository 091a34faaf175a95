"""`pyexec config`."""

import json

import click

from pyexec.environments.credentials import masked
from pyexec.observability.logs import is_secret_name
from pyexec.settings import VARIABLES, Settings, load_settings
from pyexec.storage.state_folder import StateFolder

HIDDEN = "***"
_NETWORK = frozenset(
    {"ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE"}
)


@click.group("config")
def command() -> None:
    """Show settings, and where things lie."""


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


@command.command("show")
@json_option
def show(*, as_json: bool) -> None:
    """Show every setting, its value, and where it is from; and what else uv and the network are set to.

    Secrets are shown as ***.
    """
    settings = load_settings()
    own = [_row(variable.name, settings, variable.default) for variable in VARIABLES]
    others = [_row(name, settings) for name in sorted(settings.environ) if _matters(name)]
    unknown = list(settings.unknown_variables)
    if as_json:
        click.echo(json.dumps({"settings": own, "environment": others, "unknown": unknown}))
        return
    for row in (*own, *others):
        click.echo(f"{row['name']:32} {row['value']}  ({row['from']})")
    for name in unknown:
        click.echo(f"{name:32} no such setting; is it misspelt?")


@command.command("paths")
@json_option
def paths(*, as_json: bool) -> None:
    """Show where things lie: the state folder and what is in it."""
    settings = load_settings()
    folder = StateFolder(settings.home)
    found = {
        "state": folder.root,
        "database": settings.database or folder.database,
        "executions": folder.executions,
        "environments": folder.environments,
        "log": folder.logs / "pyexec.log",
    }
    if as_json:
        click.echo(json.dumps({name: str(path) for name, path in found.items()}))
        return
    for name, path in found.items():
        click.echo(f"{name:13} {path}")


def _row(name: str, settings: Settings, default: str = "") -> dict[str, str]:
    if settings.secrets.get(name):
        return {"name": name, "value": HIDDEN, "from": "variable"}
    text = settings.environ.get(name)
    if text:
        return {"name": name, "value": HIDDEN if is_secret_name(name) else masked(text), "from": "variable"}
    found = {"PYEXEC_HOME": str(settings.home), "PYEXEC_CONCURRENT": str(settings.limits.concurrent)}
    return {"name": name, "value": found.get(name, default), "from": "default"}


def _matters(name: str) -> bool:
    return name.startswith("UV_") or name.upper() in _NETWORK
