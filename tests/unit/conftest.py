"""What every function behind the API needs to count requests; no unit test makes enough to be counted."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def allowance() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"LIMITS_TABLE": "Limits", "READS_PER_MINUTE": "1000000"}.items():
            patch.setenv(name, value)
        yield
