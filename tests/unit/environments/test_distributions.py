import sys

import pytest
from packaging.requirements import Requirement

from pyexec.environments.distributions import DISTRIBUTIONS, REMOVED, distribution_of


@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("Bio", "biopython"),
        ("Crypto", "pycryptodome"),
        ("Cryptodome", "pycryptodomex"),
        ("MySQLdb", "mysqlclient"),
        ("OpenGL", "PyOpenGL"),
        ("OpenSSL", "pyOpenSSL"),
        ("PIL", "pillow"),
        ("Xlib", "python-xlib"),
        ("absl", "absl-py"),
        ("attr", "attrs"),
        ("bs4", "beautifulsoup4"),
        ("bson", "pymongo"),
        ("cairo", "pycairo"),
        ("cv2", "opencv-python"),
        ("dateutil", "python-dateutil"),
        ("discord", "discord.py"),
        ("dns", "dnspython"),
        ("docx", "python-docx"),
        ("dotenv", "python-dotenv"),
        ("faiss", "faiss-cpu"),
        ("fitz", "PyMuPDF"),
        ("gi", "PyGObject"),
        ("git", "GitPython"),
        ("github", "PyGithub"),
        ("google.cloud.bigquery", "google-cloud-bigquery"),
        ("google.cloud.storage", "google-cloud-storage"),
        ("google.genai", "google-genai"),
        ("google.protobuf", "protobuf"),
        ("googleapiclient", "google-api-python-client"),
        ("grpc", "grpcio"),
        ("imblearn", "imbalanced-learn"),
        ("jose", "python-jose"),
        ("jwt", "PyJWT"),
        ("kafka", "kafka-python"),
        ("ldap", "python-ldap"),
        ("magic", "python-magic"),
        ("mpl_toolkits", "matplotlib"),
        ("multipart", "python-multipart"),
        ("mysql", "mysql-connector-python"),
        ("nacl", "PyNaCl"),
        ("osgeo", "GDAL"),
        ("pptx", "python-pptx"),
        ("psycopg2", "psycopg2-binary"),
        ("rest_framework", "djangorestframework"),
        ("ruamel", "ruamel.yaml"),
        ("serial", "pyserial"),
        ("skimage", "scikit-image"),
        ("sklearn", "scikit-learn"),
        ("slugify", "python-slugify"),
        ("socks", "PySocks"),
        ("telegram", "python-telegram-bot"),
        ("umap", "umap-learn"),
        ("usb", "pyusb"),
        ("websocket", "websocket-client"),
        ("whisper", "openai-whisper"),
        ("win32api", "pywin32"),
        ("wx", "wxPython"),
        ("yaml", "PyYAML"),
        ("zmq", "pyzmq"),
    ],
)
def test_a_module_is_known_by_the_distribution_it_comes_in(module: str, distribution: str) -> None:
    assert distribution_of(module) == distribution


def test_pkg_resources_needs_a_setuptools_that_still_has_it() -> None:
    assert distribution_of("pkg_resources") == "setuptools<82"


@pytest.mark.parametrize(
    ("module", "distribution"),
    [
        ("sklearn.linear_model", "scikit-learn"),
        ("google.protobuf.internal.builder", "protobuf"),
        ("mpl_toolkits.mplot3d", "matplotlib"),
        ("mpl_toolkits.basemap.cm", "basemap"),
        ("mysql.connector.aio", "mysql-connector-python"),
    ],
)
def test_the_longest_prefix_that_is_known_decides(module: str, distribution: str) -> None:
    assert distribution_of(module) == distribution


@pytest.mark.parametrize(
    "module",
    ["", "foo", "foo.cv2", "cv2x", "CV2", "google", "google.cloud", "google.cloud.storagex", "azure", "requests"],
)
def test_what_the_table_does_not_know_is_not_guessed(module: str) -> None:
    assert distribution_of(module) is None


@pytest.mark.parametrize("table", [DISTRIBUTIONS, REMOVED], ids=["distributions", "removed"])
def test_a_table_is_sorted(table: dict[str, object]) -> None:
    assert list(table) == sorted(table)


@pytest.mark.parametrize("module", [*DISTRIBUTIONS, *REMOVED])
def test_a_key_is_the_dotted_name_of_a_module(module: str) -> None:
    assert all(part.isidentifier() for part in module.split("."))


@pytest.mark.parametrize("text", sorted({*DISTRIBUTIONS.values(), *(new for _, new in REMOVED.values() if new)}))
def test_what_is_to_be_written_in_dependencies_is_a_requirement_without_extras_or_conditions(text: str) -> None:
    requirement = Requirement(text)

    assert f"{requirement.name}{requirement.specifier}" == text


def test_only_pkg_resources_needs_a_bound() -> None:
    assert [name for name, text in DISTRIBUTIONS.items() if Requirement(text).specifier] == ["pkg_resources"]


def test_no_module_stands_in_both_tables() -> None:
    assert not DISTRIBUTIONS.keys() & REMOVED.keys()


@pytest.mark.parametrize(
    ("module", "version", "replacement"),
    [
        ("asyncore", "3.12", "pyasyncore"),
        ("audioop", "3.13", "audioop-lts"),
        ("cgi", "3.13", "legacy-cgi"),
        ("distutils", "3.12", "setuptools"),
        ("imp", "3.12", None),
        ("lib2to3", "3.13", None),
        ("smtpd", "3.12", "standard-smtpd"),
        ("telnetlib", "3.13", "standard-telnetlib"),
    ],
)
def test_what_left_the_standard_library_is_known(module: str, version: str, replacement: str | None) -> None:
    assert REMOVED[module] == (version, replacement)


def test_a_module_that_has_left_is_not_in_a_standard_library_of_that_version_or_a_later_one() -> None:
    gone = {name for name, (version, _) in REMOVED.items() if sys.version_info >= tuple(map(int, version.split(".")))}

    assert not gone & sys.stdlib_module_names
