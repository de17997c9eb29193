"""The declarations of features as a later version of the code may have them."""

import pytest

from rules.leads import feature_changes, feature_items, features, series
from rules.leads.feature_items import declaration_digest
from rules.leads.features import Aggregate, Feature, Input, Unit
from tests.support import lead_processors

MONETARY_730D = Feature("monetary_730d", Input.PURCHASES, Aggregate.SUM, Unit.MINOR, "two years'", 730)


def declare(monkeypatch: pytest.MonkeyPatch, *declared: Feature) -> None:
    """Let these be all the features that are declared, wherever the live path asks."""
    for module in (features, feature_changes, feature_items, lead_processors):
        monkeypatch.setattr(module, "FEATURES", declared)
    monkeypatch.setattr(features, "BY_NAME", {each.name: each for each in declared})
    monkeypatch.setattr("adapters.leads.feature_store.BY_NAME", features.BY_NAME)
    for module in (series, feature_items):
        monkeypatch.setattr(module, "KEPT_DAYS", series.kept_days(declared))
    for module in (feature_changes, feature_items):
        monkeypatch.setattr(module, "DIGEST", declaration_digest(declared))
