"""No event of one organization changes a row of another, whatever both have in common."""

from dataclasses import replace
from random import Random

import psycopg
import pytest

from adapters.leads.identity_store import CannotRepair
from rules.leads.identity import Identity
from tests.support.identity_events import POOL, check
from tests.support.identity_server import NOW, Registry

pytestmark = pytest.mark.xdist_group("identity")
ORGANIZATIONS = ("acme", "other", "third")
# The ids of customers and things are of one organization; the others may send them all the same.
OWN = {
    "lead": "organization_id",
    "channel_identity": "organization_id",
    "lead_organization": "organization_id",
    "identity_change": "organization_id",
    "change_lead": "organization_id",
    "kept_apart": "organization_id",
}


def rows_of(registry: Registry, organization: str) -> dict[str, list[str]]:
    return {
        table: sorted(
            row
            for (row,) in registry.rows(
                f"SELECT t::text FROM identity.{table} AS t WHERE {column} = %s", organization
            )
        )
        for table, column in OWN.items()
    }


def act(registry: Registry, organization: str, random: Random) -> None:
    """An event of some identities, claimed or verified; or an operator undoes, merges or unites."""
    numbers = [number for (number,) in registry.rows("SELECT number FROM identity.identity_change")]
    leaves = [
        leaf for (leaf,) in registry.rows("SELECT lead_organization_id FROM identity.lead_organization")
    ]
    kind = random.random()
    try:
        if kind < 0.1 and numbers:  # of whichever organization
            registry.store.unmerge(organization, random.choice(numbers), "why", "me", NOW)
        elif kind < 0.2 and len(leaves) > 1:
            one, other = random.sample(leaves, 2)
            told, unite = {"reason": "one", "by": "me"}, random.random() < 0.5
            registry.store.merge_by_hand([organization], (one, other), told, unite=unite, now=NOW)
        else:
            some = random.sample(POOL, random.randint(1, 3))
            event = [
                replace(each, is_verified=random.random() < 0.6 or not each.kind.is_strong) for each in some
            ]
            found = registry.see(*event, organization=organization)
            assert all(each.organization_id == organization for each in found.changes)
    except CannotRepair:
        pass


def test_no_event_of_one_organization_changes_a_row_of_another(registry: Registry) -> None:
    random = Random(0)
    before = {name: rows_of(registry, name) for name in ORGANIZATIONS}
    for _ in range(90):
        organization = random.choice(ORGANIZATIONS)
        act(registry, organization, random)
        after = {name: rows_of(registry, name) for name in ORGANIZATIONS}
        for name in ORGANIZATIONS:
            assert name == organization or after[name] == before[name]
        before = after
    kinds = registry.rows("SELECT DISTINCT organization_id, kind FROM identity.identity_change")
    assert {("acme", "merged"), ("other", "merged"), ("third", "merged")} <= set(kinds)
    assert any(kind == "unmerged" for _, kind in kinds)


def test_what_one_organization_knows_is_what_it_would_know_alone(registry: Registry) -> None:
    """The same events, mixed with those of two others, and without them."""

    def groups(names: tuple[str, ...]) -> object:
        registry.clear()
        streams = {name: Random(name) for name in names}
        for _ in range(30):
            for name, random in streams.items():
                some = random.sample(POOL, random.randint(1, 3))
                registry.see(*some, organization=name)
        return registry.groups("acme")

    assert groups(("acme",)) == groups(ORGANIZATIONS) == groups(("third", "other", "acme"))


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE identity.lead SET root_id = 1 WHERE lead_id = 2",
        "UPDATE identity.channel_identity SET lead_id = 1 WHERE organization_id = 'other'",
        "UPDATE identity.channel_identity SET organization_id = 'other' WHERE lead_id = 1",
        "UPDATE identity.lead SET organization_id = 'other' WHERE lead_id = 1",
        "UPDATE identity.lead_organization SET lead_id = 1 WHERE organization_id = 'other'",
        "INSERT INTO identity.change_lead SELECT 'other', number, 1, 1, 2 FROM identity.identity_change",
    ],
)
def test_the_schema_itself_keeps_organizations_apart(registry: Registry, statement: str) -> None:
    registry.see(Identity("email", "a@x"))
    registry.see(Identity("email", "b@x"), organization="other")
    registry.see(Identity("email", "c@x"), organization="other")
    registry.see(Identity("email", "b@x"), Identity("email", "c@x"), organization="other")
    check(registry)
    with pytest.raises(psycopg.IntegrityError), registry.owner.transaction():
        registry.owner.execute(statement)
