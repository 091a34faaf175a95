"""How properties are looked for."""

from hypothesis import HealthCheck, settings

# A machine that is busy with something else is no fault of ours.
settings.register_profile("pyexec", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pyexec")
