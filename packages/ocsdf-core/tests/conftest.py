"""Same examples on every machine: a run of the suite is a fact about the code, and never about the clock."""

from hypothesis import settings

settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")
