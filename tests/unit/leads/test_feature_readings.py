"""Every feature has its independent reading, which the tests of the warehouse and of past instants trust."""

from datetime import UTC, datetime

from rules.lake.lead_entities import column_of
from rules.leads.features import FEATURES
from tests.support.lead_histories import features_of


def test_every_feature_has_a_plain_reading() -> None:
    read = features_of([], "l", datetime(2026, 3, 1, tzinfo=UTC))
    declared = {column_of(each) for each in FEATURES}
    assert set(read) == declared, (
        f"tests/support/lead_histories.py: _values lacks {sorted(declared ^ set(read))}"
    )
