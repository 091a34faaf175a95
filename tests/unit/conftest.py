"""How properties are looked for."""

import pytest
from hypothesis import HealthCheck, settings


def pytest_configure(config: pytest.Config) -> None:
    """Look through as many examples as there is time for, the same ones each time: no change fails by bad luck.

    Others are looked for with --hypothesis-seed=random, or a number.
    """
    long = config.getoption("--exhaustive")
    settings.register_profile(
        "pyexec",
        deadline=None,  # A machine that is busy with something else is no fault of ours.
        suppress_health_check=[HealthCheck.too_slow],
        max_examples=100 if long else 25,
        derandomize=config.getoption("--hypothesis-seed") is None,
    )
    settings.load_profile("pyexec")
