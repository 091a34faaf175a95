import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from pyexec import settings
from pyexec.domain.errors import InvalidArgumentError, UnsupportedPlatformError
from pyexec.domain.limits import DAY, MEGABYTE, EnvironmentLimits, ExecutionLimits
from pyexec.domain.sandboxes import FONTS, GUEST_NEEDS, PACKAGES, PRELOADED, DataFolder, SandboxSettings
from pyexec.observability.logs import Masker
from pyexec.settings import VARIABLES, Settings, load_settings
from pyexec.settings.authorization import AUTH_VARIABLES
from pyexec.settings.database import DATABASE_VARIABLES
from pyexec.settings.reading import Variable
from pyexec.settings.service import SERVICE_VARIABLES

TRIED = [variable for variable in VARIABLES if variable not in (*AUTH_VARIABLES, *DATABASE_VARIABLES)]
"""The others are tried in `test_authorization_settings.py` and `test_database_settings.py`: they belong together."""

GOOD: dict[str, tuple[str, Any]] = {
    "PYEXEC_HOME": ("/somewhere/else", Path("/somewhere/else")),
    "PYEXEC_LOG_LEVEL": ("Debug", "debug"),
    "PYEXEC_LOG_FORMAT": ("JSON", "json"),
    "PYEXEC_WAIT_SECONDS": ("2.5", 2.5),
    "PYEXEC_TOOLSETS": ("jobs, core", ("core", "jobs")),
    "SMART_ASYNC_TIMEOUT_SECONDS": ("1.5", 1.5),
    "PYEXEC_CONCURRENT": ("3", 3),
    "PYEXEC_QUEUED": ("7", 7),
    "PYEXEC_KEPT_OUTPUT_MB": ("5", 5 * MEGABYTE),
    "PYEXEC_ANSWER_OUTPUT_BYTES": ("1000", 1000),
    "PYEXEC_RETENTION_DAYS": ("0.5", DAY / 2),
    "PYEXEC_RETENTION_MB": ("10", 10 * MEGABYTE),
    "PYEXEC_UPLOAD_MB": ("64", 64 * MEGABYTE),
    "PYEXEC_DOWNLOAD_MB": ("1", MEGABYTE),
    "PYEXEC_AUTOSAVED_SCRIPTS": ("0", 0),
    "PYEXEC_FREE_DISK_MB": ("0", 0),
    "PYEXEC_PREPARE_SECONDS": ("60", 60.0),
    "PYEXEC_ENVIRONMENTS_MB": ("5", 5 * MEGABYTE),
    "PYEXEC_ENVIRONMENTS_DAYS": ("0.5", DAY / 2),
    "PYEXEC_FRESH_HOURS": ("0.25", 900.0),
    "PYEXEC_WALL": (" Host ", "host"),
    "PYEXEC_SANDBOX_MEMORY": ("1024", 1024 * MEGABYTE),
    "PYEXEC_SANDBOX_CPU": ("1.5", 1.5),
    "PYEXEC_SANDBOX_PROCESSES": ("128", 128),
    "PYEXEC_SANDBOX_OPEN_FILES": ("1024", 1024),
    "PYEXEC_SANDBOX_WORKSPACE": ("1", MEGABYTE),
    "PYEXEC_SANDBOX_TMP": ("2", 2 * MEGABYTE),
    "PYEXEC_SANDBOXES_MEMORY": ("4096", 4096 * MEGABYTE),
    "PYEXEC_SANDBOXES_WAITING": ("0", 0),
    "PYEXEC_SANDBOXES_WAIT_SECONDS": ("1", 1.0),
    "PYEXEC_SANDBOX_READY": ("0", 0),
    "PYEXEC_SANDBOX_PACKAGES": (
        "httpx>=0.27,<1 'tomli ; python_version < \"3.13\"'",
        ("httpx>=0.27,<1", 'tomli ; python_version < "3.13"', *GUEST_NEEDS),
    ),
    "PYEXEC_SANDBOX_PRELOAD": ("default, scipy.stats", (*PRELOADED, "scipy.stats")),
    "PYEXEC_SANDBOX_PYTHON": (" 3.13 ", "3.13"),
    "PYEXEC_SANDBOX_WAIVE": ("CPU, memory", ("memory", "cpu")),
    "PYEXEC_SANDBOX_DATA": ("a=/srv/a", (DataFolder(name="a", path="/srv/a"),)),
    "PYEXEC_SESSIONS": ("3", 3),
    "PYEXEC_SESSION_WAITING": ("0", 0),
    "PYEXEC_SESSION_IDLE_MINUTES": ("0.5", 30.0),
    "PYEXEC_SESSION_HOURS": ("2", 7200.0),
    "PYEXEC_SESSION_FILES_DAYS": ("1", DAY),
    "PYEXEC_SESSIONS_WORKSPACE": ("1", MEGABYTE),
    "PYEXEC_PACKAGES_ALLOWED": ("Six, ruamel.yaml", ("six", "ruamel-yaml")),
    "PYEXEC_PACKAGES_DENIED": ("Evil_Lib", ("evil-lib",)),
    "PYEXEC_PACKAGES_SOURCES": ("paths, URLS", ("index", "urls", "paths")),
    "PYEXEC_PACKAGES_MB": ("5", 5 * MEGABYTE),
    "PYEXEC_PACKAGES_FILES": ("50", 50),
    "PYEXEC_HTTP_HOSTS": ("Example.com:80, *.example.org,[::1]:1", ("example.com", "*.example.org", "::1")),
    "PYEXEC_HTTP_ORIGINS": ("https://Example.com/, http://a:1", ("https://example.com", "http://a:1")),
    "PYEXEC_HTTP_BODY_MB": ("1", MEGABYTE),
    "PYEXEC_HTTP_PROXIES": ("10.0.0.1, 10.1.0.0/16,::1", ("10.0.0.1", "10.1.0.0/16", "::1")),
    "PYEXEC_HTTP_RATE": ("0", 0),
    "PYEXEC_DRAIN_SECONDS": ("0.5", 0.5),
    "PYEXEC_ON_DISCONNECT": (" Detach", "detach"),
    "PYEXEC_METRICS_TOKEN": ("0123456789abcdef", "0123456789abcdef"),
    "PYEXEC_AUDIT_LOG": ("/somewhere/audit.jsonl", Path("/somewhere/audit.jsonl")),
    "PYEXEC_TRACES": ("On", True),
}
BAD: dict[str, list[str]] = {
    "PYEXEC_HOME": ["relative/path", ".", "~nobody-of-this-name/x"],
    "PYEXEC_LOG_LEVEL": ["loud", "10"],
    "PYEXEC_LOG_FORMAT": ["xml"],
    "PYEXEC_WAIT_SECONDS": ["soon", "-1", "3601", "nan", "inf"],
    "PYEXEC_TOOLSETS": ["none", "core jobs", ","],
    "SMART_ASYNC_TIMEOUT_SECONDS": ["soon", "-1", "86401", "nan", "inf"],
    "PYEXEC_CONCURRENT": ["0", "-1", "1.5", "many", "4097", "9" * 5000],
    "PYEXEC_QUEUED": ["0", "100001"],
    "PYEXEC_KEPT_OUTPUT_MB": ["0", "100001", "1e3"],
    "PYEXEC_ANSWER_OUTPUT_BYTES": ["99", str(4 * MEGABYTE + 1)],
    "PYEXEC_RETENTION_DAYS": ["-1", "36501", "nan"],
    "PYEXEC_RETENTION_MB": ["0", "lots"],
    "PYEXEC_UPLOAD_MB": ["0", "1025", "8.5"],
    "PYEXEC_DOWNLOAD_MB": ["0", "1025", "all"],
    "PYEXEC_AUTOSAVED_SCRIPTS": ["-1", "1000001", "few"],
    "PYEXEC_FREE_DISK_MB": ["-1"],
    "PYEXEC_PREPARE_SECONDS": ["0", "86401"],
    "PYEXEC_ENVIRONMENTS_MB": ["0", "1.5", "1000000001"],
    "PYEXEC_ENVIRONMENTS_DAYS": ["-1", "36501", "nan"],
    "PYEXEC_FRESH_HOURS": ["-1", "876001", "nan"],
    "PYEXEC_WALL": ["none", "docker", "host,bubblewrap"],
    "PYEXEC_SANDBOX_MEMORY": ["127", "1000001", "512MB"],
    "PYEXEC_SANDBOX_CPU": ["0", "1025", "nan", "half"],
    "PYEXEC_SANDBOX_PROCESSES": ["7", "30001", "-1"],
    "PYEXEC_SANDBOX_OPEN_FILES": ["63", "1000001"],
    "PYEXEC_SANDBOX_WORKSPACE": ["0", "1000001"],
    "PYEXEC_SANDBOX_TMP": ["0", "-64"],
    "PYEXEC_SANDBOXES_MEMORY": ["0", "1000000001", "256"],
    "PYEXEC_SANDBOXES_WAITING": ["-1", "100001"],
    "PYEXEC_SANDBOXES_WAIT_SECONDS": ["0", "86401"],
    "PYEXEC_SANDBOX_READY": ["-1", "65"],
    "PYEXEC_SANDBOX_PACKAGES": [" ", "'numpy", "numpy, pandas -r file", "-e/x"],
    "PYEXEC_SANDBOX_PRELOAD": [",", "numpy pandas", "none,numpy", "os:system", "3d"],
    "PYEXEC_SANDBOX_PYTHON": ["python3", "3", "3.11", "2.7.18", " "],
    "PYEXEC_SANDBOX_WAIVE": ["all", "memory cpu", "none,cpu", ","],
    "PYEXEC_SANDBOX_DATA": ["a", "a=b", "a=/b;", "a=/b,a=/c", ","],
    "PYEXEC_SESSIONS": ["0", "many", "100001"],
    "PYEXEC_SESSION_WAITING": ["-1", "1.5"],
    "PYEXEC_SESSION_IDLE_MINUTES": ["0", "nan", "525601"],
    "PYEXEC_SESSION_HOURS": ["0", "inf"],
    "PYEXEC_SESSION_FILES_DAYS": ["-1", "36501"],
    "PYEXEC_SESSIONS_WORKSPACE": ["0", "1000000001"],
    "PYEXEC_PACKAGES_ALLOWED": [",", "six==1", "a b", "-x"],
    "PYEXEC_PACKAGES_DENIED": [",", "six>=1", "./x"],
    "PYEXEC_PACKAGES_SOURCES": [",", "anywhere", "git"],
    "PYEXEC_PACKAGES_MB": ["0", "1000001", "lots"],
    "PYEXEC_PACKAGES_FILES": ["0", "10000001"],
    "PYEXEC_HTTP_HOSTS": ["https://example.com", "a*.example.com", "*", "*."],
    "PYEXEC_HTTP_ORIGINS": ["example.com", "*", "ftp://a", "https://a/path", "null"],
    "PYEXEC_HTTP_BODY_MB": ["0", "1025"],
    "PYEXEC_HTTP_PROXIES": ["proxy", "*", "10.0.0.1/8", "10.0.0.256"],
    "PYEXEC_HTTP_RATE": ["-1", "1000001", "fast"],
    "PYEXEC_DRAIN_SECONDS": ["-1", "3601", "nan"],
    "PYEXEC_ON_DISCONNECT": ["kill", "cancel,detach"],
    "PYEXEC_METRICS_TOKEN": ["short", "with spaces in between", "größer-als-sechzehn"],
    "PYEXEC_AUDIT_LOG": ["audit.jsonl"],
    "PYEXEC_TRACES": ["yes", "1"],
}


def value_of(found: Settings, name: str) -> Any:
    variable = next(variable for variable in VARIABLES if variable.name == name)
    if variable.limit is not None:
        if variable.limit.startswith("packages_"):
            return getattr(found.packages, variable.limit.removeprefix("packages_"))
        groups = (found.limits, found.environment_limits, found.file_limits, found.sandboxes)
        groups = (*groups, found.sandboxes.limits, found.sessions, found.service)
        # What is set for one must not be taken for another's.
        (value,) = (getattr(group, variable.limit) for group in groups if hasattr(group, variable.limit))
        return value
    return getattr(found, name.removeprefix("PYEXEC_").lower())


def load(name: str, text: str) -> Settings:
    service = {} if name in {variable.name for variable in SERVICE_VARIABLES} else None
    return load_settings({name: text}, service=service)


def test_every_variable_is_tried_here() -> None:
    assert set(GOOD) == set(BAD) == {variable.name for variable in TRIED}


@pytest.mark.parametrize("name", GOOD)
def test_a_variable_sets_what_it_says(name: str) -> None:
    text, value = GOOD[name]

    assert value_of(load(name, text), name) == value


@pytest.mark.parametrize(("name", "text"), [(name, text) for name, texts in BAD.items() for text in texts])
def test_a_value_that_is_not_allowed_is_refused_with_what_is(name: str, text: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        load_settings({name: text})

    variable = next(variable for variable in VARIABLES if variable.name == name)
    assert refusal.value.message.startswith(f"{name} is ")
    assert "it must be " in refusal.value.message
    assert variable.meaning in refusal.value.sentence()


@pytest.mark.parametrize("name", GOOD)
def test_an_empty_variable_counts_as_not_set(name: str) -> None:
    service = {} if name in {variable.name for variable in SERVICE_VARIABLES} else None
    assert value_of(load(name, ""), name) == value_of(load_settings({}, service=service), name)


def test_the_defaults_are_those_of_the_limits_with_four_per_core(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 3)

    assert load_settings({}).limits == ExecutionLimits(concurrent=12)
    assert load_settings({}).environment_limits == EnvironmentLimits()
    assert load_settings({}).sandboxes == SandboxSettings()


@pytest.mark.parametrize("variable", TRIED, ids=lambda variable: variable.name)
def test_the_default_that_is_told_is_the_one_that_holds(variable: Variable) -> None:
    if variable.name in ("PYEXEC_HOME", "PYEXEC_CONCURRENT", "PYEXEC_SANDBOXES_MEMORY", "PYEXEC_AUDIT_LOG"):
        assert not variable.default.isdecimal()
        return

    assert value_of(load(variable.name, ""), variable.name) == variable.read(variable.default)


def test_the_usual_packages_of_sandboxes_can_be_added_to_and_the_guest_has_what_it_needs_in_any_case() -> None:
    assert load_settings({"PYEXEC_SANDBOX_PACKAGES": "default numba"}).sandboxes.packages == (*PACKAGES, "numba")
    assert load_settings({"PYEXEC_SANDBOX_PACKAGES": "numpy"}).sandboxes.packages == ("numpy", *GUEST_NEEDS)
    assert set(GUEST_NEEDS + FONTS) < set(PACKAGES)


def test_a_misspelt_setting_is_noticed_and_no_reason_to_refuse() -> None:
    others = {"PYEXEC_EXECUTION_ID": "a", "PYEXECUTOR": "b", "PYEXEC_IDP_ISSUER": "c"}
    found = load_settings({"PYEXEC_WAIT": "1", "PYEXEC_HOMES": "/x", **others})

    assert found.unknown_variables == ("PYEXEC_HOMES", "PYEXEC_WAIT")


def test_windows_is_refused_politely(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")

    with pytest.raises(UnsupportedPlatformError) as refusal:
        load_settings({})

    assert refusal.value.code == "unsupported_platform"
    assert "Windows Subsystem for Linux" in refusal.value.sentence()


def test_relative_paths_begin_in_the_current_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    assert load_settings({}).directory == tmp_path


def test_relative_paths_begin_in_the_directory_that_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path.parent)

    assert load_settings({}, directory=Path(tmp_path.name)).directory == tmp_path


@pytest.mark.parametrize("name", ["gone", "file", "~nobody-of-this-name/x"])
def test_a_directory_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()

    with pytest.raises(InvalidArgumentError, match="--directory"):
        load_settings({}, directory=Path(name))


def test_what_is_secret_is_inherited_by_nothing_and_masked_in_the_log() -> None:
    kept = {"PATH": "/bin", "TOKEN": "of the user's programs", "OTEL_EXPORTER_OTLP_HEADERS": "of the user's programs"}
    secret = {"PYEXEC_METRICS_TOKEN": "metrics-token-0123", "PYEXEC_IDP_DATABASE": "postgresql://idp:hunter2@db/idp"}
    found = load_settings({**kept, **secret})
    assert (found.environ, found.secrets) == (kept, secret)
    assert Masker({}, found.secrets.values()).mask(f"with {secret['PYEXEC_METRICS_TOKEN']}") == "with ****"
    traced = load_settings({**kept, "PYEXEC_TRACES": "on"}, service={})
    assert traced.secrets == {"OTEL_EXPORTER_OTLP_HEADERS": "of the user's programs"}
    assert "hunter2" not in repr(found)


def test_every_setting_that_sounds_secret_is_told_to_be_or_not_to_be() -> None:
    secret = {variable.name for variable in VARIABLES if variable.secret}
    assert secret == {"PYEXEC_METRICS_TOKEN", "PYEXEC_AUTH_INTROSPECTION_SECRET", "PYEXEC_DATABASE_URL"}
    no_secret = {"PYEXEC_AUTH_INTROSPECTION_SECRET_FILE"}
    sounding = {name for name in (variable.name for variable in VARIABLES) if re.search("TOKEN|SECRET|PASSW", name)}
    assert sounding == (secret - {"PYEXEC_DATABASE_URL"}) | no_secret


def test_the_environment_is_never_shown() -> None:
    assert "hunter2" not in repr(load_settings({"TOKEN": "hunter2"}))


@pytest.mark.parametrize(
    ("uid", "platform", "environ", "home"),
    [
        (0, "linux", {"XDG_STATE_HOME": "/x"}, "/var/lib/pyexec"),
        (1000, "linux", {}, "/home/ann/.local/state/pyexec"),
        (1000, "linux", {"XDG_STATE_HOME": "/x"}, "/x/pyexec"),
        (1000, "linux", {"XDG_STATE_HOME": "relative"}, "/home/ann/.local/state/pyexec"),
        (501, "darwin", {}, "/home/ann/Library/Application Support/pyexec"),
    ],
    ids=["root", "user", "user with a state home", "user with a relative state home", "macOS"],
)
def test_the_state_folder_lies_where_the_system_keeps_such_things(
    monkeypatch: pytest.MonkeyPatch, uid: int, platform: str, environ: dict[str, str], home: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", "/home/ann")

    assert load_settings(environ).home == Path(home)


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, 7.0),
        ({"SMART_ASYNC_TIMEOUT_SECONDS": "3"}, 3.0),
        ({"MY_TIMEOUT": "0.5", "SMART_ASYNC_TIMEOUT_SECONDS": "3"}, 0.5),
        ({"MY_TIMEOUT": "", "SMART_ASYNC_TIMEOUT_SECONDS": "3"}, 3.0),
    ],
)
def test_a_smart_async_tool_waits_as_its_own_variable_says_then_the_general_one(
    environ: dict[str, str], seconds: float
) -> None:
    assert settings.smart_async_seconds("MY_TIMEOUT", 7.0, environ) == seconds


def test_a_wrong_budget_of_a_smart_async_tool_is_refused_by_the_name_of_its_variable() -> None:
    with pytest.raises(InvalidArgumentError, match=r"MY_TIMEOUT is 'soon'; it must be a number between 0 and 86400"):
        settings.smart_async_seconds("MY_TIMEOUT", 7.0, {"MY_TIMEOUT": "soon"})
