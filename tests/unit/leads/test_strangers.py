"""Strangers who type anything into a public form never make two people one whom the sources prove different."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

import pytest

from rules.leads.identity import Identity
from tests.support.identity_model import World

STRANGERS, JUNK, REAL = 1000, 30, 200


@dataclass(frozen=True)
class Person:
    """Somebody whom the sources prove: a customer of the shop, with an address; a sender of WhatsApp."""

    number: int
    identities: tuple[Identity, ...]


def people() -> list[Person]:
    """200 real values of 100 people: one in three is proven by the shop, one by WhatsApp, one by both."""
    made = []
    for number in range(REAL // 2):
        customer = Identity("customer", f"acme/shop/{number}")
        email, phone = Identity("email", f"p{number}@x"), Identity("phone", f"4915100{number:06}")
        made.append(Person(number, ((customer, email), (phone,), (customer, email, phone))[number % 3]))
    return made


def values() -> list[Identity]:
    real = [Identity("email", f"p{number}@x", False) for number in range(REAL // 2)]
    real += [Identity("phone", f"4915100{number:06}", False) for number in range(REAL // 2)]
    junk = [Identity("email", f"junk{number}@x", False) for number in range(JUNK // 2)]
    return (
        real + junk * 8 + [Identity("phone", f"4917700{number:06}", False) for number in range(JUNK // 2)] * 8
    )


def typed(random: Random, pool: Sequence[Identity], stranger: int) -> list[Identity]:
    some = {each.channel: each for each in random.sample(pool, random.randint(1, 3))}
    cookies = [Identity("cookie", f"acme/site/{stranger % 400}", False)] if random.random() < 0.5 else []
    return [*some.values(), *cookies]


@pytest.mark.parametrize("seed", range(6))
def test_strangers_never_merge(seed: int) -> None:
    random, pool = Random(seed), values()
    events = [typed(random, pool, stranger) for stranger in range(STRANGERS)]
    for person in people():
        proof = list(person.identities)
        events += [proof, [*proof, Identity("cookie", f"acme/site/{person.number}", False)]]
        if len(proof) == 1:  # as a form with both of a person's own values
            events.append([Identity("email", f"p{person.number}@x", False), *proof])
    random.shuffle(events)
    world = World()
    for each in events:
        world.see(*each)
    roots = {person.number: {world.root(each) for each in person.identities} for person in people()}
    assert all(len(each) == 1 for each in roots.values()), "who is proven is one"
    assert len(set.union(*roots.values())) == len(people()), "and nobody else"
    for root in set(world.leads.values()):
        proven = {each for each in world.held(root) if each.is_verified}
        owners = {person.number for person in people() if proven & set(person.identities)}
        assert len(owners) <= 1
    # What many typed leads to nobody.
    shared = {each for each, (_, is_shared) in world.owner.items() if is_shared and each.kind.is_strong}
    assert shared
    assert not shared & world.proven
