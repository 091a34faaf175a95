"""Where the records lie, as an operator says it; and that the password in it is shown nowhere."""

from pathlib import Path

import pytest

from pyexec.domain.databases import DatabaseAddress
from pyexec.domain.errors import InvalidArgumentError
from pyexec.observability.logs import Masker
from pyexec.settings import database, load_settings
from pyexec.settings.database import DATABASE_VARIABLES

URL, URL_FILE = (variable.name for variable in DATABASE_VARIABLES)
SECRET = "s3cr3t-of-a-person"

GOOD = {
    f"postgresql://ann:{SECRET}@db.example.com:5433/records": "postgresql://ann:***@db.example.com:5433/records",
    f"postgres://ann:{SECRET}%40%2F@[::1]/records?sslmode=verify-full": (
        "postgresql://ann:***@[::1]/records?sslmode=verify-full"
    ),
    "postgresql+psycopg://ann@/records?host=/run/postgresql": "postgresql://ann@/records?host=/run/postgresql",
    f"postgresql://ann:{SECRET}@h/records?options=-csearch_path%3Dours": (
        "postgresql://ann:***@h/records?options=-csearch_path%3Dours"
    ),
}

BAD = [
    f"mysql://ann:{SECRET}@h/records",
    "sqlite:////var/lib/pyexec/pyexec.db",
    f"ann:{SECRET}@h/records",
    f"postgresql:ann:{SECRET}@h/records",
    f"postgresql://ann:{SECRET}@h",
    f"postgresql://ann:{SECRET}@h/",
    f"postgresql://ann:{SECRET}@h/records/more",
    f"postgresql://ann:{SECRET}@/records",
    f"postgresql://ann:{SECRET}@h:port/records",
    f"postgresql://ann:{SECRET}@h:70000/records",
    f"postgresql://ann:{SECRET}/x@h/records",
    f"postgresql://ann:{SECRET}#x@h/records",
    f"postgresql://ann:{SECRET}?x@h/records",
    f"postgresql://ann:{SECRET}@x@h/records",
    f"postgresql://ann:{SECRET} @h/records",
    f"postgresql://ann:{SECRET}\n@h/records",
    f"postgresql://ann@h/records?password={SECRET}",
    f"postgresql://ann@h/records?sslpassword={SECRET}",
    f"postgresql://ann@h/records?{SECRET}",
    "postgresql://ann@h/records?dbname=other",
    "postgresql://ann@h/records?host=other",
    "postgresql://ann@/records?host=one&host=other",
    f"postgresql://ann:{SECRET}@h/records#x",
]


@pytest.mark.parametrize("url", GOOD)
def test_an_address_is_taken_as_it_is_and_shown_without_its_password(url: str) -> None:
    found = load_settings({URL: url})

    assert found.database == DatabaseAddress(url)
    assert str(found.database) == GOOD[url]
    assert SECRET not in repr(found)


@pytest.mark.parametrize("url", BAD)
def test_what_is_no_address_is_refused_with_the_forms_there_are_and_never_repeated(tmp_path: Path, url: str) -> None:
    file = tmp_path / "url"
    file.write_text(url)
    for variables in ({URL: url}, {URL_FILE: str(file)}):
        with pytest.raises(InvalidArgumentError) as refusal:
            load_settings(variables)

        assert next(iter(variables)) in refusal.value.message
        assert "postgresql://USER:PASSWORD@HOST:PORT/DATABASE" in refusal.value.sentence()
        assert SECRET not in refusal.value.sentence()
        assert refusal.value.__cause__ is None


def test_without_any_the_records_are_in_the_state_folder() -> None:
    assert load_settings({}).database is None
    assert load_settings({URL: "", URL_FILE: ""}).database is None


def test_the_address_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text(f"postgresql://ann:{SECRET}@h/records\n")

    assert load_settings({URL_FILE: str(file)}).database == DatabaseAddress(f"postgresql://ann:{SECRET}@h/records")


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    for path, why in ((tmp_path / "gone", "No such file"), (tmp_path, "Is a directory"), (tmp_path / "bytes", "UTF-8")):
        with pytest.raises(InvalidArgumentError, match=why):
            load_settings({URL_FILE: str(path)})
    with pytest.raises(InvalidArgumentError, match=f"{URL_FILE} is 'url'; it must be an absolute path"):
        load_settings({URL_FILE: "url"})


def test_both_at_once_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidArgumentError, match="both set"):
        load_settings({URL: "postgresql://ann@h/records", URL_FILE: str(tmp_path / "url")})


def test_without_the_driver_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "DRIVER", "no_such_driver_of_anybody")

    with pytest.raises(InvalidArgumentError) as refusal:
        load_settings({URL: f"postgresql://ann:{SECRET}@h/records"})

    assert refusal.value.hint == "pip install 'mcp-pyexec[postgres]'"
    assert SECRET not in refusal.value.sentence()


@pytest.mark.parametrize("name", ["PYEXEC_METRICS_TOKEN", URL])
def test_a_secret_that_is_not_allowed_is_not_repeated(name: str) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        load_settings({name: "hunter2"})

    assert "hunter2" not in refusal.value.sentence()


def test_logs_show_the_password_neither_within_its_address_nor_alone_nor_decoded() -> None:
    url = f"postgresql://ann:{SECRET}%2Fx@h/records"
    mask = Masker({URL: url}).mask

    for text in (url, f"refused {SECRET}%2Fx", f"refused {SECRET}/x"):
        assert SECRET not in mask(text)
