"""Reading a script's docstring, and putting one in."""

import inspect

import pytest

from pyexec.domain.errors import InvalidArgumentError
from pyexec.scripts.docstrings import parse, with_docstring

HEADER = "# /// script\n# dependencies = []\n# ///\n"


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        ("", "What.", '"""What."""\n'),
        ("import a\n", "What.", '"""What."""\n\nimport a\n'),
        (
            "#!/usr/bin/env python\n# coding: utf-8\nimport a\n",
            "W",
            '#!/usr/bin/env python\n# coding: utf-8\n\n"""W"""\n\nimport a\n',
        ),
        (f"{HEADER}import a\n", "What.", f'{HEADER}\n"""What."""\n\nimport a\n'),
        (
            f"{HEADER}\nfrom __future__ import annotations\n",
            "W",
            f'{HEADER}\n"""W"""\n\nfrom __future__ import annotations\n',
        ),
        (f"{HEADER}# About a.\n@a\ndef f(): pass\n", "W", f'{HEADER}\n"""W"""\n\n# About a.\n@a\ndef f(): pass\n'),
        (f"import a\n{HEADER}", "W", f'"""W"""\n\nimport a\n{HEADER}'),
        ('"""Old."""\nimport a\n', "New.", '"""New."""\nimport a\n'),
        ('# One.\n"""Old\n\nlong.\n"""; import a\n', "New.", '# One.\n"""New."""\nimport a\n'),
        ("'ä' 'ö'; a = 1\nb = 2\n", "New.", '"""New."""\na = 1\nb = 2\n'),
        ('"""Same."""\nimport a\n', "Same.", '"""Same."""\nimport a\n'),
        ("a = '\f'\n", "W", '"""W"""\n\na = \'\f\'\n'),
    ],
    ids=range(12),
)
def test_a_docstring_goes_where_python_looks_for_it_and_all_else_stays(source: str, text: str, expected: str) -> None:
    written = with_docstring(source, text)
    assert written == expected
    assert parse(written).docstring == text


@pytest.mark.parametrize(
    "text", ['He said """no"""', 'ends with "', "a\\b \\", "two\n\n    lines", "x" * 300, "\\N{no}", "ü€"]
)
def test_any_text_comes_back_as_it_was(text: str) -> None:
    assert parse(with_docstring("a = 1\n", text)).docstring == inspect.cleandoc(text)


def test_a_source_that_cannot_be_parsed_gets_no_docstring() -> None:
    with pytest.raises(InvalidArgumentError, match="Line 2: "):
        with_docstring("a = 1\ndef (\n", "What.")


@pytest.mark.parametrize(
    "source", ["(" * 100_000, "x = " + "-" * 100_000 + "1", "a = 1\0", b"# coding: none\n", b"\xff"]
)
def test_hostile_source_is_a_fault(source: str | bytes) -> None:
    assert parse(source).fault
