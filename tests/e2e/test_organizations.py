"""Three organizations in the deployed stack, with the same people: each one's token reaches its own leads alone."""

from datetime import UTC, datetime
from typing import Any

import pytest

from local import replay
from local.api import Api
from local.cloud.patience import drain_leads
from local.stack import Stack
from tests.support.effort import only_soak
from tests.support.lead_orders import Lead

# There is one cloud: one process runs all of these.
pytestmark = pytest.mark.xdist_group("cloud")


def seen(organization: str, name: str, **identities: str) -> dict[str, Any]:
    payload = {
        "external_event_id": name,
        "event_type": "page_viewed",
        "occurred_at": datetime.now(UTC).isoformat(),
        "identities": identities,
        "data": {"category": "shoes"},
    }
    return {"organization_id": organization, "source": "generic", "payload": payload}


def requests(organization: str, lead: str, other: str, change: int) -> list[tuple[str, str, Any]]:
    """Every route of leads, about one organization's."""
    find = f"organization_id={organization}&integration=generic&external_event_id=one"
    return [
        ("GET", f"/v1/leads?{find}", None),
        *(("GET", f"/v1/leads/{lead}/{what}", None) for what in ("events", "memory", "features", "changes")),
        ("POST", "/v1/leads/lookup", {"organization_id": organization, "email": "ada@example.com"}),
        ("POST", "/v1/leads/merges", {"leads": [lead, other], "reason": "why"}),
        ("POST", f"/v1/leads/changes/{change}/reversal", {"reason": "why"}),
        (
            "POST",
            f"/v1/leads/changes/{change}/reversal",
            {"reason": "why", "organization_id": organization},
        ),
    ]


@only_soak(
    "tests/integration/test_lead_access.py for what a token reaches, test_others_are_refused_before_anything_is_read"
    " (tests/unit/leads/test_leads_api.py) for what one without an organization reaches,"
    " test_leads_of_two_organizations_are_never_one and test_history_is_the_organization_s_own"
    " (tests/integration/test_identity_api.py) and test_an_organization_undoes_its_own_merges_alone"
    " (tests/integration/test_identity_store.py) for merges, tests/e2e/test_lead_merges.py for one on the cloud"
)
def test_organizations_with_the_same_people_are_apart(stack: Stack, organization: str, lead_of: Lead) -> None:
    names = [f"{organization}-{letter}" for letter in "abc"]
    tokens = {each: Api(stack, f"crm-{each}", group=f"streakline/leads/{each}") for each in names}
    email, phone = {"email": "ada@example.com"}, {"phone": "+49 151 12345678"}
    for name in names:
        for what in (seen(name, "one", **email), seen(name, "two", **phone)):
            assert tokens[name].call("POST", "/v1/leads/events", what)[0] == 202
    drain_leads(stack)
    one, two = ({name: lead_of(name, which, "generic") for name in names} for which in ("one", "two"))
    assert len({*one.values(), *two.values()}) == 6

    # The first one's people turn out to be one; an operator of the second merges by hand; nothing of the third moves.
    first, second, third = names
    replay.queue_webhooks(stack, [seen(first, "both", **email, **phone)])
    drain_leads(stack)
    told = tokens[first].get(f"/v1/leads/{one[first]}/changes")["changes"]
    merge = {"leads": [one[second], two[second]], "reason": "one person"}
    status, by_hand = tokens[second].call("POST", "/v1/leads/merges", merge)
    assert status == 200
    drain_leads(stack)
    changes = {first: told[0]["number"], second: by_hand["change"], third: by_hand["change"]}
    for name in names:
        roots = {tokens[name].get(f"/v1/leads/{each}/features")["lead_id"] for each in (one[name], two[name])}
        assert len(roots) == (2 if name == third else 1)
    announced = tokens[second].get(f"/v1/leads/{one[second]}/events")["events"]
    (event,) = [each for each in announced if each["event_type"] == "leads_merged"]
    assert (event["payload"]["reason"], event["payload"]["by"]) == ("one person", f"crm-{second}")

    bare = Api(stack, "bare", group="streakline/leads")
    before = {name: everything(tokens[name], one[name]) for name in names}
    for name in names:
        for method, path, body in requests(name, one[name], two[name], changes[name]):
            for asker in {*names} - {name}:
                if "reversal" in path and changes[asker] == changes[name] and "organization_id" not in body:
                    continue  # its own change of that number
                status, answer = tokens[asker].call(method, path, body)
                assert status == 404, (asker, method, path, answer)
            assert bare.call(method, path, body)[0] == 403
        for asker in {*names} - {name}:
            assert tokens[asker].call("POST", "/v1/leads/events", seen(name, "foreign", **email))[0] == 403
    drain_leads(stack)
    assert {name: everything(tokens[name], one[name]) for name in names} == before

    status, _ = tokens[first].call(
        "POST", f"/v1/leads/changes/{changes[first]}/reversal", {"reason": "two people"}
    )
    assert status == 202
    drain_leads(stack)
    found = tokens[first].call(
        "POST", "/v1/leads/lookup", {"organization_id": first, "phone": "0049 (151) 123-45678"}
    )
    assert found == (200, {"lead_id": two[first], "is_verified": True})


def everything(api: Api, lead: str) -> list[Any]:
    return [api.get(f"/v1/leads/{lead}/{what}") for what in ("events", "memory", "changes")]
