"""The page offers to repair a run that has just broken, and tells what it costs."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from tests.browser.given import call, earn

pytestmark = pytest.mark.xdist_group("browser")


def test_a_broken_run_is_repaired_after_the_person_agreed_to_its_price(visit: Any) -> None:
    user = f"repairer-{uuid4().hex[:8]}"
    two_days_ago = datetime.now(UTC).replace(hour=12) - timedelta(days=2)
    earn(user, 3, two_days_ago.isoformat())
    offer = call(user, "GET", f"/v1/users/{user}")["repair"]
    assert offer["dates"] == [str(two_days_ago.date() + timedelta(days=1))]
    person = visit()
    main = person.sign_in(user)
    card = main.get_by_role("region", name="Repair your streak")
    card.wait_for()
    assert "you can repair that, for 20 points." in card.inner_text()
    card.get_by_role("button", name="Repair it for 20 points").press("Enter")
    dialog = person.page.locator("dialog[open]")
    assert "If you were active after all, the points come back." in dialog.inner_text()
    dialog.get_by_role("button", name="Yes, repair it").press("Enter")
    person.page.locator("section.settings p.gained").wait_for()
    assert "Your streak is repaired, for 20 points." in main.locator("body").inner_text()
    assert "Streak repaired" in main.locator("body").inner_text()
    assert card.count() == 0
    profile = call(user, "GET", f"/v1/users/{user}")
    assert (profile["current_streak"], profile["balance"]) == (1, 10)


def test_who_has_not_the_points_is_told_so(visit: Any) -> None:
    user = f"poor-{uuid4().hex[:8]}"
    earn(user, 1, (datetime.now(UTC).replace(hour=12) - timedelta(days=2)).isoformat())
    person = visit()
    card = person.sign_in(user).get_by_role("region", name="Repair your streak")
    card.wait_for()
    assert "You have 10 points." in card.inner_text()
    assert card.get_by_role("button", name="Repair it for 20 points").is_disabled()
