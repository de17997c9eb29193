"""Each function that counts ignored campaigns goes by the variable of the setting."""

import pytest

from analytics.steps import warehouse_function
from processors.leads import features
from tests.support.engine import Engine


def test_the_functions_go_by_their_variable(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (engine.environment("") | {"CAMPAIGN_GRACE_DAYS": "3"}).items():
        monkeypatch.setenv(name, value)
    assert features._parts.build().grace_days == 3
    steps = warehouse_function._parts.build()
    assert steps.settings == (("campaign_grace_days", 3),)
    monkeypatch.setenv("CAMPAIGN_GRACE_DAYS", "4")
    assert warehouse_function._parts.build().filled_by != steps.filled_by
