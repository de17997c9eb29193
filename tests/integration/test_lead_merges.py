"""Leads that are merged or parted are announced, also when the consumer dies between any two calls."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest

from adapters.platform.queues import PoisonMessage
from rules.leads.lead_events import groups_of
from tests.support.lead_site import Died, Site, order
from tests.support.webhooks import NOW

pytestmark = pytest.mark.xdist_group("identity")


def apart(site: Site) -> tuple[str, str]:
    """Two leads; returns their leaves."""
    site.send(order(1, customer={"email": "a@example.com"}))
    site.send(order(2, customer={"phone": "+49 151 0000 0001"}))
    leaves = {each.external_event_id: each.lead_organization_id for each in site.stored()}
    return leaves["order:1"], leaves["order:2"]


BOTH = {"email": "a@example.com", "phone": "+49 151 0000 0001"}


def test_leads_that_an_event_proves_to_be_one_are_announced_as_one_and_apart_again(site: Site) -> None:
    one, two = apart(site)
    assert one != two
    site.send(order(3, customer=BOTH))
    (merged,) = site.of_source("identity")
    number, groups = groups_of(merged)
    assert [(each.root, sorted(each.leaves)) for each in groups] == [(one, sorted((one, two)))]
    assert (merged.event_type, merged.external_event_id, merged.root_id) == ("leads_merged", str(number), one)
    assert site.registry.store.pending() == ()

    command = {"command": "unmerge", "change": number, "reason": "two people", "by": "ada"}
    site.consumer.handle(command, NOW + timedelta(hours=1))
    (parted,) = (each for each in site.of_source("identity") if each.event_type == "leads_unmerged")
    assert {(each.root, each.leaves) for each in groups_of(parted)[1]} == {(one, (one,)), (two, (two,))}
    site.consumer.handle(command, NOW + timedelta(hours=2))
    assert len(site.of_source("identity")) == 2

    apart_again = site.registry.dump(but=["identity_change", "change_lead"])
    site.send(order(3, customer=BOTH))
    assert site.registry.dump(but=["identity_change", "change_lead"]) == apart_again, (
        "a resend proves nothing anew"
    )


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ({"change": 99, "reason": "r", "by": "b"}, "change 99 is no merge"),
        ({"change": 0, "reason": "r", "by": "b"}, "change"),
        ({"change": 1, "reason": "", "by": "b"}, "reason"),
        ({"change": 1, "reason": "a\x00b", "by": "b"}, "reason"),
        ({"change": 1, "reason": "r", "by": "\ud800"}, "no Unicode"),
        ({"change": 1, "by": "b"}, "reason is missing"),
        ({"change": 1.5, "reason": "r", "by": "b"}, "change"),
    ],
)
def test_a_command_that_cannot_be_done_says_why(command: dict[str, Any], reason: str, site: Site) -> None:
    with pytest.raises(PoisonMessage, match=reason):
        site.consumer.handle({"command": "unmerge", **command}, NOW)


def test_a_crash_between_any_two_calls_leaves_one_event_and_everybody_told(site: Site) -> None:
    many = [{"sku": f"sku-{number}", "quantity": 1} for number in range(40)]
    number, died, crashes = 0, True, 0
    while died:
        site.registry.clear()
        site.organization = f"org-{uuid4()}"
        one, two = apart(site)
        site.life.steps_left = number
        try:
            site.send(order(3, customer=BOTH, line_items=many))
            died = False
        except Died:
            crashes += 1
        site.life.steps_left = None
        site.send(order(3, customer=BOTH, line_items=many))
        stored = site.of_source("ecommerce")
        assert sorted(each.external_event_id for each in stored) == ["order:1", "order:2", "order:3"]
        (told,) = site.of_source("identity")
        assert [sorted(each.leaves) for each in groups_of(told)[1]] == [sorted((one, two))]
        assert site.registry.store.pending() == ()
        number += 1
    assert crashes >= 10, "calls to the claim, identities, announcement, S3, the event"


def test_a_crash_while_leads_are_parted_leaves_everybody_told(site: Site) -> None:
    number, died = 0, True
    while died:
        site.registry.clear()
        site.organization = f"org-{uuid4()}"
        apart(site)
        site.send(order(3, customer=BOTH))
        change = int(site.of_source("identity")[0].external_event_id)
        command = {"command": "unmerge", "change": change, "reason": "r", "by": "b"}
        site.life.steps_left = number
        try:
            site.consumer.handle(command, NOW)
            died = False
        except Died:
            pass
        site.life.steps_left = None
        site.consumer.handle(command, NOW)
        assert sorted(each.event_type for each in site.of_source("identity")) == [
            "leads_merged",
            "leads_unmerged",
        ]
        assert site.registry.store.pending() == ()
        number += 1
    assert number >= 6
