"""Every package that sandboxes have by default works in one, within the usual limits.

Making the environment takes a minute or more and a gigabyte: only with `pytest --usual-packages`.
"""

from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pyexec.domain.limits import SandboxLimits
from pyexec.domain.sandboxes import FONTS, PACKAGES
from pyexec.walls.bubblewrap.inside import inside_of
from tests.walls.bubblewrap import (
    GUEST,
    INTERPRETER_NEEDS,
    AttackedWall,
    inside,
    made_environment,
    site_packages,
    wall_around,
)
from tests.walls.interface import run

pytestmark = [pytest.mark.root, pytest.mark.usual_packages]
SECONDS = 120.0

TRIED: dict[str, tuple[str, str]] = {
    "numpy": ("import numpy as np; print(round(float(np.linalg.det(np.eye(3) * 2)), 3))", "8.0"),
    "pandas": (
        (
            "import pandas as pd; pd.DataFrame({'a': [1, 2]}).to_excel('/work/a.xlsx');"
            "print(pd.read_excel('/work/a.xlsx').a.rolling(2).mean().tolist()[1])"
        ),
        "1.5",
    ),
    "polars": (
        (
            "import polars as pl; pl.DataFrame({'a': range(100_000)}).write_parquet('/work/a');"
            "print(pl.scan_parquet('/work/a').group_by(pl.col('a') % 2).agg(pl.len()).collect().shape)"
        ),
        "(2, 2)",
    ),
    "scipy": (
        (
            "import scipy.optimize, scipy.stats; found = scipy.optimize.minimize(lambda x: (x[0] - 3) ** 2, [0.0]);"
            "print(round(float(found.x[0]), 3), float(scipy.stats.norm.cdf(0)))"
        ),
        "3.0 0.5",
    ),
    "scikit-learn": (
        (
            "from sklearn.datasets import load_iris; from sklearn.ensemble import RandomForestClassifier;"
            "from sklearn.cluster import KMeans; from sklearn.model_selection import cross_val_score;"
            "X, y = load_iris(return_X_y=True); print(KMeans(3, n_init=2).fit(X).n_features_in_,"
            "len(cross_val_score(RandomForestClassifier(10, n_jobs=-1), X, y, n_jobs=2)))"
        ),
        "4 5",
    ),
    "statsmodels": (
        (
            "import numpy as np, pandas as pd, statsmodels.formula.api as smf;"
            "frame = pd.DataFrame({'x': np.arange(20.0), 'y': np.arange(20.0) * 2 + 1});"
            "print(smf.ols('y ~ x', frame).fit().params.round(3).tolist())"
        ),
        "[1.0, 2.0]",
    ),
    "matplotlib": ("import matplotlib.pyplot as plt; print(len(plt.plot([1, 2]))); plt.savefig('/work/a.pdf')", "1"),
    "seaborn": ("import seaborn as sns; sns.set_theme(); print(len(sns.kdeplot([1.0, 2, 3, 4]).lines))", "1"),
    "plotly": ("import plotly.express as px; print('plotly' in px.bar(x=['a'], y=[1]).to_html())", "True"),
    "altair": (
        (
            "import altair, pandas; chart = altair.Chart(pandas.DataFrame({'a': [1]})).mark_bar().encode(x='a:Q');"
            "print(chart.to_dict()['mark']['type'])"
        ),
        "bar",
    ),
    "pillow": (
        "from PIL import Image; Image.new('RGB', (50, 40)).save('/work/a.webp');print(Image.open('/work/a.webp').size)",
        "(50, 40)",
    ),
    "duckdb": (
        (
            "import duckdb; database = duckdb.connect('/work/a.db');"
            "print(database.execute('select sum(i) from range(1000000) t(i)').fetchall())"
        ),
        "[(499999500000,)]",
    ),
    "openpyxl": (
        (
            "import openpyxl; book = openpyxl.Workbook(); book.active['A1'] = 'x'; book.save('/work/a.xlsx');"
            "print(openpyxl.load_workbook('/work/a.xlsx').active['A1'].value)"
        ),
        "x",
    ),
    "lxml": ("from lxml import etree; print(etree.fromstring('<a><b/></a>').xpath('count(//b)'))", "1.0"),
    "sympy": ("import sympy; x = sympy.symbols('x'); print(sympy.integrate(sympy.sin(x), x))", "-cos(x)"),
    "networkx": ("import networkx as nx; print(nx.shortest_path(nx.path_graph(5), 0, 4))", "[0, 1, 2, 3, 4]"),
    "ipython": ("import IPython; print(IPython.version_info >= (8, 18))", "True"),
}
ALL_AT_ONCE = """
import altair, duckdb, IPython, lxml.etree, matplotlib.pyplot, networkx, numpy, openpyxl, pandas, PIL.Image
import plotly.express, polars, scipy.stats, seaborn, sklearn.ensemble, statsmodels.api, sympy
print(polars.DataFrame({"a": [1, 2]})["a"].sum(), duckdb.execute("select 1").fetchall())
"""


@pytest.fixture(scope="module")
def environment(pytestconfig: pytest.Config) -> Path:
    cache = pytestconfig.cache
    assert cache is not None
    return made_environment(cache.mkdir("usual-packages") / "home", PACKAGES)


@pytest.fixture(scope="module")
def usual_wall(environment: Path) -> Iterator[AttackedWall]:
    """The wall as an operator has it who sets nothing, but for what runs in it."""
    usual = inside_of(environment, None, INTERPRETER_NEEDS, guest=GUEST)
    assert usual.preloaded[:4] == ("IPython", "numpy", "pandas", "matplotlib.pyplot")
    what = inside(site_packages(environment), python=usual.python, preloaded=usual.preloaded)
    with wall_around(what) as made:
        yield AttackedWall(made, SandboxLimits())


def test_each_of_them_is_tried_here_and_fits_the_lower_bound_it_was_asked_for_with(environment: Path) -> None:
    asked = {canonicalize_name(Requirement(one).name): Requirement(one).specifier for one in PACKAGES}
    fonts = {canonicalize_name(Requirement(one).name) for one in FONTS}
    assert set(TRIED) == set(asked) - fonts
    here = {canonicalize_name(one.name): one.version for one in distributions(path=[str(site_packages(environment))])}
    assert all(asked[name].contains(here[name]) for name in asked)


@pytest.mark.parametrize("name", TRIED)
def test_it_is_imported_and_works_within_the_usual_limits(usual_wall: AttackedWall, name: str) -> None:
    code, printed = TRIED[name]
    sandbox = usual_wall.sandbox()
    try:
        ran = run(sandbox, code, SECONDS)
    finally:
        sandbox.close()
    assert (ran.out.strip(), ran.error) == (printed, None)


def test_all_of_them_fit_into_one_sandbox_together(usual_wall: AttackedWall) -> None:
    sandbox = usual_wall.sandbox()
    try:
        ran = run(sandbox, ALL_AT_ONCE, SECONDS)
        usage = sandbox.box.usage()
    finally:
        sandbox.close()
    assert (ran.out, ran.error) == ("3 [(1,)]\n", None)
    assert usage is not None
    assert usage.out_of_memory == 0
