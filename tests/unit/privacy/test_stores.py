"""What is planned can be done: each store of a plan has what finds and removes a person in it."""

import re
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any

import pytest

from adapters.privacy.erasers import Clients
from adapters.privacy.stores import RATES, ErasureSettings, all_stores
from rules.privacy.erasures import PersonKind, plan_of
from tests.support.template import ROOT

VALUES: dict[str, Any] = {each.name: each.name for each in fields(ErasureSettings)} | {
    "identity_url": "postgresql://me@host/database"
}
CONFIG = ErasureSettings(**VALUES)


@pytest.mark.parametrize("kind", PersonKind)
def test_each_planned_store_has_an_eraser(kind: PersonKind) -> None:
    clients = Clients(None, lambda: None, lambda: None)
    known = all_stores(clients, CONFIG, datetime.now(UTC))
    assert {store.name for store in plan_of(kind)} <= known.keys()


def test_each_rate_that_counts_a_caller_is_known() -> None:
    text = "".join(each.read_text() for each in (ROOT / "ingest").rglob("*.py"))
    counted = set(re.findall(r"RateLimit\(\s*\w+, \"([a-z ]+)\"", text))
    assert counted - {"requests"} == {*RATES, "exports"}, (
        "requests name an address, by its hash; exports live a day"
    )
