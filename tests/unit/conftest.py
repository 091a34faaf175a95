"""How properties are looked for."""

import pytest
from hypothesis import HealthCheck, settings

# A machine that is busy with something else is no fault of ours.
settings.register_profile("long", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("short", settings.get_profile("long"), max_examples=25)


def pytest_configure(config: pytest.Config) -> None:
    """Look through as many examples as there is time for."""
    settings.load_profile("long" if config.getoption("--exhaustive") else "short")
