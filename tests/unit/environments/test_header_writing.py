"""Writing what a script needs into its header."""

import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.environments.header_writing import HeaderEditor

RICH = """\
#!/usr/bin/env python3
'''Keeps everything.'''
# /// script
# # what we need
# dependencies = [  # each for a reason
#   "rich<10",  # "old"
#   "httpx[http2]; python_version < '3.13'",
# ]
# requires-python = ">=3.9"
#
# [tool.uv]
# index-url = "https://example.org/simple"  # dependencies = []
# ///
print("a")
"""


def write(source: str, *dependencies: str, requires_python: str | None = None) -> str:
    return HeaderEditor().write(source, dependencies, requires_python)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", "# /// script\n# dependencies = []\n# ///\n"),
        ("a = 1\n", "# /// script\n# dependencies = []\n# ///\n\na = 1\n"),
        ("#!/bin/python\na = 1\n", "#!/bin/python\n# /// script\n# dependencies = []\n# ///\n\na = 1\n"),
        (
            "#!/bin/python\n# -*- coding: utf-8 -*-\na = 1\n",
            "#!/bin/python\n# -*- coding: utf-8 -*-\n# /// script\n# dependencies = []\n# ///\n\na = 1\n",
        ),
    ],
    ids=["empty", "plain", "first line", "encoding"],
)
def test_a_source_without_a_header_gets_one_behind_the_lines_that_must_be_first(source: str, expected: str) -> None:
    assert write(source) == expected


def test_what_is_asked_for_goes_into_the_header() -> None:
    assert write("a = 1\n", "rich", "numpy>=2", requires_python=">=3.11") == (
        "# /// script\n"
        '# requires-python = ">=3.11"\n'
        "# dependencies = [\n"
        '#     "rich",\n'
        '#     "numpy>=2",\n'
        "# ]\n"
        "# ///\n\na = 1\n"
    )


def test_a_header_keeps_what_nobody_speaks_of() -> None:
    assert write(RICH, "Rich>=13") == (
        "#!/usr/bin/env python3\n"
        "'''Keeps everything.'''\n"
        "# /// script\n"
        '# requires-python = ">=3.9"\n'
        "# dependencies = [\n"
        "#     \"httpx[http2]; python_version < '3.13'\",\n"
        '#     "Rich>=13",\n'
        "# ]\n"
        "# # what we need\n"
        "#\n"
        "# [tool.uv]\n"
        '# index-url = "https://example.org/simple"  # dependencies = []\n'
        "# ///\n"
        'print("a")\n'
    )


def test_a_header_that_says_it_already_stays_as_it_is_written() -> None:
    assert write(RICH) == RICH


@pytest.mark.parametrize("ending", ["", "\n"])
def test_a_header_at_the_end_of_a_file_stays_there(ending: str) -> None:
    written = write(f"a = 1\n# /// script\n# dependencies = []\n# ///{ending}", "rich")
    assert written == 'a = 1\n# /// script\n# dependencies = ["rich"]\n# ///\n'


def test_another_range_takes_the_place_of_the_headers() -> None:
    written = write(RICH, requires_python=">=3.12")
    assert HeaderEditor().read(written.encode()).requires_python == ">=3.12"
    assert written.count("requires-python") == 1


@pytest.mark.parametrize(
    ("source", "dependencies", "python", "message"),
    [
        ("", ("no such thing!",), None, "cannot be read"),
        ("", ("--index-url=https://x",), None, "an option"),
        ("", ("rich==1", "rich==2"), None, "exclude each other"),
        ("", ("./here",), None, "relative path"),
        ("", ("-e ./here",), None, "relative path"),
        ("", ("x @ https://me:secret@host/x.whl",), None, "has credentials"),
        ("", (), "three", "requires-python"),
        ("# /// script\na = 1\n", ("rich",), None, "is not closed"),
        ("# /// script\n# dependencies = 1\n# ///\n", ("rich",), None, "list of strings"),
    ],
)
def test_what_cannot_be_kept_is_refused(
    source: str, dependencies: tuple[str, ...], python: str | None, message: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        write(source, *dependencies, requires_python=python)
    assert "secret" not in caught.value.sentence()


def test_credentials_that_a_person_has_put_into_a_header_are_not_shown() -> None:
    source = b'# /// script\n# dependencies = ["x @ https://me:secret@host/x.whl"]\n# ///\n'
    assert HeaderEditor().read(source).dependencies == ("x @ https://***@host/x.whl",)
