"""Identities, by which leads are recognised, and their channels.

A strong identity names one person; a weak one names a thing, which people may share. Who writes by WhatsApp
has a phone, an id at WhatsApp, or both. Each identity has one spelling (ingest/leads/spelling.py makes it).
Example: "+49 (151) 123-4567" and "0049 151 1234567" are one identity, `491511234567`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Channel:
    """A kind of identity.

    max_per_lead: how many identities of this channel one lead may have; None: any number. is_scoped: whether
    the external id begins with its scope, `{organization}/{integration}`; the maximum then counts within a
    scope.
    Example: customer 42 of acme's shop is `acme/shop/42`.
    """

    name: str
    is_strong: bool
    max_per_lead: int | None
    is_scoped: bool


# The channel of highest precedence comes first.
CHANNELS = (
    Channel("customer", is_strong=True, max_per_lead=1, is_scoped=True),
    Channel("email", is_strong=True, max_per_lead=5, is_scoped=False),
    # Meta's business-scoped user ids: DE.13491208655302741918, and DE.ENT.118... for linked businesses.
    # Whoever changes his number gets others; those of before stay his.
    Channel("whatsapp", is_strong=True, max_per_lead=20, is_scoped=False),
    Channel("phone", is_strong=True, max_per_lead=3, is_scoped=False),
    Channel("device", is_strong=False, max_per_lead=None, is_scoped=True),
    Channel("cookie", is_strong=False, max_per_lead=None, is_scoped=True),
)
RANKS = {channel.name: rank for rank, channel in enumerate(CHANNELS)}
STRONG = tuple(channel.name for channel in CHANNELS if channel.is_strong)


@dataclass(frozen=True, slots=True)
class Identity:
    """One identity, in its one spelling.

    is_verified: whether the source proves that it is this person's; if not, somebody claimed it. It is no
    part of the identity: the same address, claimed once and proven once, is one identity.
    Example: the sender of a WhatsApp message is verified, an address typed into a form is claimed.
    """

    channel: str
    external_id: str
    is_verified: bool = field(default=True, compare=False)

    @property
    def kind(self) -> Channel:
        """The channel's declaration."""
        return CHANNELS[RANKS[self.channel]]

    @property
    def scope(self) -> str:
        """The scope in which the channel's maximum counts; "" if it counts everywhere."""
        return "/".join(self.external_id.split("/", 2)[:2]) if self.kind.is_scoped else ""


def in_order(identities: Iterable[Identity]) -> tuple[Identity, ...]:
    """Return identities by precedence, each once: verified, if it is verified anywhere among them."""
    once: dict[Identity, Identity] = {}
    for each in identities:
        if each.is_verified or each not in once:
            once[each] = each
    return tuple(sorted(once.values(), key=lambda each: (RANKS[each.channel], each.external_id)))
