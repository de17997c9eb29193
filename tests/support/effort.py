"""How much a test tries: `make test` what has found faults, in minutes; `make soak` far more, by the hour."""

import os

import pytest

SOAK = bool(os.environ.get("SOAK"))
# `make test-all` runs what `make test` leaves to `make soak`, too, and tries no more of anything.
LEAVES_NONE = SOAK or bool(os.environ.get("ALL"))


def effort(test: int, soak: int) -> int:
    """Return how many of something a test tries."""
    return soak if SOAK else test


def only_soak(proven_by: str) -> pytest.MarkDecorator:
    """Leave a test to `make soak`: it is dear, and other tests prove the same in `make test`.

    proven_by: these tests; `make test` names them at its end. tests/conftest.py deselects the test.
    """
    return pytest.mark.only_soak(proven_by)
