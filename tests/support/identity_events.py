"""Identities of two people, and random events that carry some of them."""

from dataclasses import replace
from random import Random

from rules.leads.identity import Identity, fits_one_lead
from tests.support.identity_server import Registry

SHOP = "acme/shop"
C1, C2 = (Identity("customer", f"{SHOP}/{n}") for n in "12")
E1, E2 = Identity("email", "a@x"), Identity("email", "b@x")
P1, P2 = Identity("phone", "4915100000001"), Identity("phone", "4915100000002")
D1, D2 = (Identity("device", f"{SHOP}/{n}") for n in "12")
K1 = Identity("cookie", f"{SHOP}/1")
POOL = (C1, C2, E1, E2, P1, P2, D1, D2, K1)
ORGANIZATIONS = ("acme", "other")


def events(random: Random, count: int) -> list[tuple[tuple[Identity, ...], str]]:
    """Events of two organizations, two thirds of them proven and one third claimed."""
    return [
        (
            tuple(
                replace(each, is_verified=random.random() < 0.67 or not each.kind.is_strong)
                for each in random.sample(POOL, random.randint(1, 3))
            ),
            random.choice(["acme", "acme", "other"]),
        )
        for _ in range(count)
    ]


MOVES = "SELECT lead_id, root_before, root_after FROM identity.change_lead ORDER BY number, lead_id"
PROVEN = (
    "SELECT jsonb_agg(jsonb_build_array(channel, external_id)) FROM identity.lead"
    " JOIN identity.channel_identity USING (lead_id) WHERE is_verified GROUP BY root_id"
)
APART = (
    "SELECT array_agg(lead_id) FILTER (WHERE is_moved), array_agg(lead_id) FILTER (WHERE NOT is_moved)"
    " FROM identity.kept_apart GROUP BY organization_id, number"
)


def check(registry: Registry) -> None:
    """No group breaks a maximum or holds what was parted; what is noted and announced comes to what is."""
    for group in registry.rows(PROVEN):
        assert fits_one_lead(Identity(*each) for each in group[0])
    roots: dict[int, int] = dict(registry.rows("SELECT lead_id, root_id FROM identity.lead"))
    noted = {lead: lead for lead in roots}
    for lead, before, after in registry.rows(MOVES):
        assert noted[lead] == before
        noted[lead] = after
    assert noted == roots
    for moved, stayed in registry.rows(APART):
        assert {roots[lead] for lead in moved}.isdisjoint(roots[lead] for lead in stayed)
    heard: dict[str, str] = {}
    for (told,) in registry.rows("SELECT announcement FROM identity.identity_change ORDER BY number"):
        for group in (group for groups in told.values() for group in groups):
            assert group["root"] == group["leaves"][0]
            heard |= dict.fromkeys(group["leaves"], group["root"])
    held = registry.rows(
        "SELECT array_agg(lead_organization_id ORDER BY number) FROM identity.lead"
        " JOIN identity.lead_organization USING (lead_id) GROUP BY root_id"
    )
    for (leaves,) in held:
        for leaf in leaves:
            assert heard.get(leaf, leaf) == leaves[0]
