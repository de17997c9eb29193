"""Identities of a few people, and the groups of leads after events that carry them."""

from hypothesis import settings

from rules.leads.identity import Identity, fits_one_lead
from tests.support.examples import examples
from tests.support.identity_model import World

SHOP, SITE = "acme/shop", "acme/site"
C1, C2, C3 = (Identity("customer", f"{SHOP}/{n}") for n in "123")
E1, E2 = Identity("email", "a@x"), Identity("email", "b@x")
P1, P2 = Identity("phone", "4915100000001"), Identity("phone", "4915100000002")
D1, D2 = (Identity("device", f"{SHOP}/{n}") for n in "12")
K1 = Identity("cookie", f"{SITE}/1")
properties = settings(max_examples=examples(120))


def after(*events: tuple[Identity, ...]) -> World:
    world = World()
    for each in events:
        world.see(*each)
    return world


def check(world: World) -> None:
    for root in set(world.leads.values()):
        assert world.leads[root] == root
        assert fits_one_lead(each for each in world.held(root) if each.is_verified)
    assert all(len({world.leads[lead] for lead in pair}) == 2 for pair in world.apart)
    for lead, is_shared in world.owner.values():
        if is_shared:  # alone, for good
            assert world.leads[lead] == lead
            assert [lead] == [own for own, root in world.leads.items() if root == lead]
            assert [own for own, _ in world.owner.values()].count(lead) == 1
