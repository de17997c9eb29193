"""Who writes by WhatsApp, with a number, an id of WhatsApp's, or both, is one person with one consent."""

import itertools
from typing import Any

import pytest

from adapters.platform.queues import PoisonMessage
from rules.leads.memory import remembered_entries
from tests.support.identity_server import WAYS
from tests.support.lead_site import Site, order
from tests.support.webhooks import preference, system, text, whatsapp

pytestmark = [pytest.mark.xdist_group("identity"), pytest.mark.parametrize("registry", WAYS, indirect=True)]
OLD, NEW = "16505551234", "4915112345678"
ID, NEXT_ID, PARENT = "DE.90210000000000001", "DE.90210000000000002", "DE.ENT.90210000000000003"


def message(number: int, words: str = "hi", **sender: Any) -> dict[str, Any]:
    written = text(words, number, **sender)
    return written if "from" in sender else {name: each for name, each in written.items() if name != "from"}


def people(site: Site) -> set[frozenset[tuple[str, str]]]:
    return site.registry.groups(site.organization)


def consent(site: Site) -> str | None:
    found = remembered_entries(site.stored()).get("consent#notifications")
    return found.value if found else None


def test_a_sender_without_a_number_is_a_lead_and_is_found_again(site: Site) -> None:
    for number in (1, 2):
        site.send(whatsapp(message(number, from_user_id=ID)), "whatsapp")
    assert people(site) == {frozenset({("whatsapp", ID)})}
    assert len({each.lead_organization_id for each in site.stored()}) == 1


def test_number_and_id_in_one_message_are_one_person_with_his_orders(site: Site) -> None:
    site.send(order(1, customer={"id": 5, "phone": f"+{OLD}"}))
    site.send(
        whatsapp(message(1, **{"from": OLD, "from_user_id": ID, "from_parent_user_id": PARENT})), "whatsapp"
    )
    site.send(whatsapp(message(2, from_user_id=ID)), "whatsapp")
    site.send(whatsapp(message(3, from_parent_user_id=PARENT)), "whatsapp")
    assert len({each.lead_organization_id for each in site.stored()}) == 1
    (person,) = people(site)
    assert {("phone", OLD), ("whatsapp", ID), ("whatsapp", PARENT)} < person


def test_two_people_until_a_message_has_both(site: Site) -> None:
    site.send(whatsapp(message(1, "STOP", **{"from": OLD})), "whatsapp")
    site.send(whatsapp(message(2, from_user_id=ID)), "whatsapp")
    assert len(people(site)) == 2
    contacts = [{"profile": {"name": "Ann", "username": "ann"}, "wa_id": OLD, "user_id": ID}]
    site.send(whatsapp(message(3, from_user_id=ID), contacts=contacts), "whatsapp")
    assert people(site) == {frozenset({("phone", OLD), ("whatsapp", ID)})}


def test_a_stop_by_id_alone_is_of_the_one_who_wrote(site: Site) -> None:
    site.send(whatsapp(message(1, **{"from": OLD, "from_user_id": ID})), "whatsapp")
    site.send(preference("stop", user_id=ID), "whatsapp")
    assert (len(people(site)), consent(site)) == (1, "off")
    site.send(preference("resume", user_id=ID, timestamp=1772000009), "whatsapp")
    assert (len(people(site)), consent(site)) == (1, "on")


@pytest.mark.parametrize("is_late", [False, True])
def test_a_changed_number_leads_to_the_same_person_and_his_opt_out(site: Site, *, is_late: bool) -> None:
    told = system(
        "user_changed_number", **{"from": OLD, "wa_id": NEW, "user_id": NEXT_ID, "previous_user_id": ID}
    )
    site.send(whatsapp(message(1, "STOP", **{"from": OLD, "from_user_id": ID})), "whatsapp")
    if is_late:  # the new number has written before
        site.send(whatsapp(message(2, **{"from": NEW})), "whatsapp")
    site.send(whatsapp(told), "whatsapp")
    site.send(whatsapp(message(3, **{"from": NEW})), "whatsapp")
    site.send(whatsapp(message(4, from_user_id=NEXT_ID)), "whatsapp")
    assert people(site) == {
        frozenset({("phone", OLD), ("phone", NEW), ("whatsapp", ID), ("whatsapp", NEXT_ID)})
    }
    assert consent(site) == "off"
    kinds = [each.event_type for each in site.stored()]
    assert kinds.count("message_received") == 3 + is_late
    assert kinds.count("identity_replaced") == 1


def test_an_id_that_changes_again_and_again_stays_one_person(site: Site) -> None:
    ids = [f"DE.9021{number}" for number in range(8)]
    site.send(whatsapp(message(0, "stop", from_user_id=ids[0])), "whatsapp")
    for number, (before, after) in enumerate(itertools.pairwise(ids), 1):
        told = system("user_changed_user_id", number, user_id=after, previous_user_id=before)
        site.send(whatsapp(told), "whatsapp")
    site.send(whatsapp(message(9, from_user_id=ids[-1])), "whatsapp")
    assert len(people(site)) == 1


def test_an_opt_out_beside_a_malformed_entry_is_remembered(site: Site) -> None:
    (entry,) = whatsapp(message(1, "ok, stop", **{"from": OLD}))["entry"]
    with pytest.raises(PoisonMessage, match=r"^payload\.entry\.0\.changes is missing$"):
        site.send({"entry": [{"id": "1"}, entry]}, "whatsapp")
    assert (people(site), consent(site)) == ({frozenset({("phone", OLD)})}, "off")
