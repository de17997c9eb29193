"""A stack with data goes from small to standard and back, and `streakline smoke` passes in each.

The emulator has no nested stacks, no aliases' shift and no types such as Redshift's, and the laptop brings its own
Redis and PostgreSQL. So this shows that one stack can be updated by either size's template, that data stays and that
functions work with either size's variables; not what AWS refuses, how long it takes, what versions from before meet, nor
what becomes of Aurora's password (tests/infra/test_updates.py judges the first and the last two by the templates).
"""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.api import Api
from local.cloud import laptop_cloud
from local.cloud.patience import drain_leads
from local.stack import Stack
from tests.e2e.conftest import event, printed
from tests.support.effort import only_soak
from tests.support.lead_orders import Lead, bought, send

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")


@only_soak("the template's part: tests/infra/test_updates.py; the deployment's: tests/e2e/test_smoke.py")
def test_a_stack_with_data_goes_from_small_to_standard_and_back(
    stack: Stack,
    user: str,
    organization: str,
    post: Callable[..., Any],
    settled: Callable[..., None],
    lead_of: Lead,
) -> None:
    seen: list[tuple[str, Any, Any, str]] = []

    def look(number: int) -> None:
        """Send an event and an order, and note what is there by now."""
        post(event(user, f"k{number}"))
        # At noon, which today may not have reached yet.
        yesterday = datetime.now(UTC).date() - timedelta(days=1)
        send(stack, organization, bought(yesterday, "1.00", number=number))
        settled(user)
        drain_leads(stack)
        api = Api(stack)
        profile = api.get(f"/v1/users/{user}")
        ledger = api.get(f"/v1/users/{user}/ledger")["entries"]
        lead = lead_of(organization, f"order:c-{number}")
        seen.append((stack.outputs["LeaderboardShards"], profile, ledger, lead))
        smoke = json.loads(printed("smoke", "--json"))
        assert smoke["ok"], smoke

    look(1)
    try:
        for number, size in ((2, "standard"), (3, "small")):
            stack = laptop_cloud.up({"Size": size})
            look(number)
    finally:
        laptop_cloud.up({"Size": "small"})  # as other tests know it
    assert [each[0] for each in seen] == ["1", "4", "1"]
    assert len({each[3] for each in seen}) == 1, "each order is of the one lead"
    assert seen[0][1]["current_streak"] == seen[2][1]["current_streak"] == 1
    # Beside them is one entry of a setting: the zone that the first event named.
    assert [[entry["kind"] for entry in each[2]].count("EARN") for each in seen] == [1, 2, 3]
