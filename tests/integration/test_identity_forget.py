"""PostgreSQL forgets a smoke test's leads, and nobody else's."""

from types import SimpleNamespace

import pytest

from adapters.postgresql.sql import PostgresRefused
from ingest.leads import lead_consumer
from rules.smoke_names import smoke_name
from tests.support.identity_events import D1, E1, E2, P1
from tests.support.identity_server import Registry

pytestmark = pytest.mark.xdist_group("identity")
SMOKE = smoke_name(17)


def test_leads_of_a_smoke_test_are_gone_with_all_that_is_known_of_them(registry: Registry) -> None:
    registry.see(E2)
    before = registry.dump()
    registry.see(E1, P1, organization=SMOKE)
    registry.see(D1, organization=SMOKE)
    assert registry.dump() != before
    assert registry.store.forget(SMOKE) == 0
    assert registry.dump() == before
    assert registry.store.forget(SMOKE) == 0


def test_a_lead_that_a_change_touched_stays_and_is_told(registry: Registry) -> None:
    registry.see(E1)
    registry.see(E1, organization=SMOKE)
    registry.see(D1, organization=SMOKE)
    registry.see(E2, D1, organization=SMOKE)  # merges two
    before = registry.dump()
    assert registry.store.forget(SMOKE) == 2
    gone = {name: set(before[name]) - set(rows) for name, rows in registry.dump().items()}
    assert {name: len(rows) for name, rows in gone.items() if rows} == dict.fromkeys(
        ("lead", "channel_identity", "lead_organization"), 1
    )


@pytest.mark.parametrize("organization", ["acme", "smoke-", f"{SMOKE}-kinesis", f"{SMOKE}\nacme", ""])
def test_no_other_organization_can_be_forgotten(registry: Registry, organization: str) -> None:
    registry.see(E1, organization=organization or "acme")
    before = registry.dump()
    with pytest.raises(PostgresRefused, match="SQLSTATE 22023"):
        registry.store.forget(organization)
    assert registry.dump() == before


def test_the_function_does_it(registry: Registry, monkeypatch: pytest.MonkeyPatch) -> None:
    registry.see(E1, organization=SMOKE)
    consumer = SimpleNamespace(identities=registry.store)
    monkeypatch.setattr(lead_consumer, "_parts", lambda: (consumer, None))
    context = SimpleNamespace(
        function_name="f", memory_limit_in_mb=1, invoked_function_arn="a", aws_request_id="r"
    )
    assert lead_consumer.handler({"streakline_forget": SMOKE}, context) == {"left": 0}
    assert registry.rows("SELECT FROM identity.lead") == []
