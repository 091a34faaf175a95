import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.environments.headers import ScriptHeader, read_header

PLAIN = b"""\
# /// script
# requires-python = ">=3.11"
# dependencies = [
#   "rich",
#   "numpy>=2",  # arrays
# ]
# ///
import rich
"""


def test_a_header_gives_its_dependencies_and_its_range_of_versions() -> None:
    assert read_header(PLAIN) == ScriptHeader(dependencies=("rich", "numpy>=2"), requires_python=">=3.11", present=True)


@pytest.mark.parametrize(
    "source",
    [
        b"",
        b"print(1)\n",
        b"# a comment\n# /// scripts\n# x = 1\n# ///\n",
        b"  # /// script\n  # x = 1\n  # ///\n",
        b"# /// other\n# dependencies = ['rich']\n# ///\n",
        b"\xff\xfe\x00\x01",
        b"# -*- coding: no-such-codec -*-\nprint('# /// script')\n",
    ],
    ids=["empty", "code", "another-word", "indented", "another-type", "bytes", "unknown-encoding"],
)
def test_a_script_without_a_header_gives_an_empty_one(source: bytes) -> None:
    assert read_header(source) == ScriptHeader()


@pytest.mark.case("B024")
@pytest.mark.parametrize(
    "source",
    [
        b"\xef\xbb\xbf" + PLAIN,
        PLAIN.replace(b"\n", b"\r\n"),
        PLAIN.replace(b"\n", b"\r"),
        b"\xef\xbb\xbf" + PLAIN.replace(b"\n", b"\r\n"),
        b"#!/usr/bin/env python3\n# -*- coding: latin-1 -*-\n" + PLAIN + b"name = '\xe9'\n",
        PLAIN + b"name = '\xe9'\n",
    ],
    ids=["bom", "crlf", "cr", "bom-crlf", "latin-1", "not-utf-8"],
)
def test_a_header_counts_behind_a_byte_order_mark_with_any_line_ends_in_any_encoding(source: bytes) -> None:
    assert read_header(source) == read_header(PLAIN)


def test_a_header_that_ends_the_file_without_a_line_end_counts() -> None:
    assert read_header(b"# /// script\n# dependencies = ['rich']\n# ///").dependencies == ("rich",)


def test_a_header_that_asks_for_nothing_is_still_there() -> None:
    assert read_header(b"# /// script\n# dependencies = []\n# ///\n") == ScriptHeader(present=True)


def test_a_header_may_have_lines_that_are_a_hash_alone_and_other_blocks_beside_it() -> None:
    source = b"# /// other\n# x = 1\n# ///\n\n# /// script\n#\n# dependencies = ['rich']\n#\n# ///\n"
    assert read_header(source).dependencies == ("rich",)


def test_the_settings_for_uv_are_read_too() -> None:
    source = b"# /// script\n# dependencies = []\n# [tool.uv]\n# exclude-newer = '2026-01-01'\n# ///\n"
    assert read_header(source).uv_settings == {"exclude-newer": "2026-01-01"}


@pytest.mark.parametrize("tool", [b"# tool = 3\n", b"# [tool]\n# uv = 'x'\n"], ids=["tool", "uv"])
def test_settings_for_uv_that_are_no_table_are_passed_over(tool: bytes) -> None:
    assert read_header(b"# /// script\n" + tool + b"# ///\n").uv_settings == {}


def test_two_headers_are_refused_with_both_lines() -> None:
    block = b"# /// script\n# dependencies = []\n# ///\n"
    with pytest.raises(InvalidArgumentError, match="at line 1 and at line 5"):
        read_header(block + b"\n" + block)


def test_a_header_that_is_not_closed_is_refused_with_its_line() -> None:
    with pytest.raises(InvalidArgumentError, match="opened at line 2, is not closed"):
        read_header(b"import sys\n# /// script\n# dependencies = ['rich']\n\nprint(1)\n")


@pytest.mark.parametrize(
    ("body", "line"),
    [
        (b"# dependencies = ['rich'\n# x = \n", 5),
        (b"# dependencies = [\n#  'rich',\n#  nonsense\n# ]\n", 6),
        (b"# dependencies = [\n", 4),
        (b"# a = 1\n# dependencies = 'rich'\n", 5),
        (b"# a = 1\n# dependencies = ['rich', 3]\n", 5),
        (b"# requires-python = 3.11\n", 4),
        (b"# requires-python = '3.11'\n", 4),
        (b"# requires-python = ''\n", 4),
    ],
    ids=["toml", "toml-later", "toml-end", "text", "number", "float", "version", "empty"],
)
def test_what_cannot_be_read_in_a_header_is_refused_with_its_line(body: bytes, line: int) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        read_header(b"#!/usr/bin/env python\n\n# /// script\n" + body + b"# ///\n")
    assert f"line {line}" in caught.value.message


def test_a_long_script_is_read_in_one_pass() -> None:
    with pytest.raises(InvalidArgumentError, match="not closed"):
        read_header(b"# /// script\n" + b"# x\n" * 200_000)
    assert read_header(PLAIN + b"# a comment\n" * 200_000).dependencies == ("rich", "numpy>=2")
