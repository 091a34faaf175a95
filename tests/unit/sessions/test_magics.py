"""IPython's syntax is written out as IPython itself would, and nothing else is touched."""

from typing import Any

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from pyexec.sessions.magics import as_python

SAME_AS_IPYTHON = [
    "%time x = 1",
    "  \n%matplotlib inline",
    "x = 1\n%pip install a b\ny = 2",
    "!ls -l {x} $y",
    "!!ls",
    "files = !ls *.py",
    "a, b = !echo 1",
    "t = %time 1 + 1",
    "t = %sql select 1",
    "print?",
    "a.b??",
    "?print",
    "??print",
    "if True:\n    %time\n    !true\nelse:\n    pass",
    "!echo a \\\n  b\nx = 1",
    "%%bash\nexit 5\n",
    "%%time\nx = (1,\n 2)",
    "%%capture out --no-stderr\nprint(1)",
    "\n%%html\n<b>",
    "%%writefile x.py",
    "for x in y:\n    z = !echo $x\n    print(z)",
    "%timeit 'a\\'b'",
    "   %time\n   x = 1\n",
]

UNTOUCHED = [
    "x = (a\n% b)",
    "s = '''\n%time\n!ls\n'''\nt = \"\"\"\nprint?\n\"\"\"",
    "x = a \\\n% b",
    "# %time\nx = 5 % 3  # what?",
    "x != y",
    "x = {\n  'a': 1,\n  # %\n  'b': 2}",
    "s = 'it\\'s (not'\nx = 1 % 2",
    "if x:\n    y = '%s' % z",
    "f = f'{x!r}'",
    "x %= 3",
    "",
    "@a\ndef f(): ...",
]


@pytest.mark.parametrize("code", SAME_AS_IPYTHON)
def test_it_is_what_ipython_would_make_of_it(code: str) -> None:
    transformer: Any = TransformerManager()
    assert as_python(code).strip("\n") == transformer.transform_cell(code).strip("\n")
    assert as_python(code) != code


@pytest.mark.parametrize("code", UNTOUCHED)
def test_python_stays_as_it_is(code: str) -> None:
    assert as_python(code) == code


def test_a_magic_behind_a_string_that_was_never_closed_is_found() -> None:
    assert as_python("x = 'oh\n%time") == "x = 'oh\nget_ipython().run_line_magic('time', '')"
