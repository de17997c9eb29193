"""How much a test tries: `make test` what has found faults, in minutes; `make soak` far more, by the hour."""

import os

SOAK = bool(os.environ.get("SOAK"))


def effort(test: int, soak: int) -> int:
    """Return how many of something a test tries."""
    return soak if SOAK else test
