"""Identities, by which leads are recognised: the channels, and the one spelling of each identity.

A strong identity names one person; a weak one names a thing, which people may share. WhatsApp is the phone
channel: its ids are E.164 digits. Example: "+49 (151) 123-4567" and "0049 151 1234567" are one identity,
`491511234567`.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

RAW_CHARACTERS_MAX = 200
PHONE_DIGITS_MIN, PHONE_DIGITS_MAX = 8, 15


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
    Channel("phone", is_strong=True, max_per_lead=3, is_scoped=False),
    Channel("device", is_strong=False, max_per_lead=None, is_scoped=True),
    Channel("cookie", is_strong=False, max_per_lead=None, is_scoped=True),
)
RANKS = {channel.name: rank for rank, channel in enumerate(CHANNELS)}
STRONG = tuple(channel.name for channel in CHANNELS if channel.is_strong)


@dataclass(frozen=True, slots=True)
class Identity:
    """One identity. `identity` makes it, so that two spellings of the same one are equal.

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


def identity(channel: str, raw: str, organization: str, integration: str, *, is_verified: bool) -> Identity:
    """Return an identity in its one spelling.

    organization, integration: where it comes from; the scope of customers, devices and cookies. is_verified:
    whether that source proves it.
    Raises ValueError, with channel and reason.
    """
    if channel not in RANKS:
        raise ValueError(f"{channel} is no channel: there are {', '.join(RANKS)}")
    try:
        text = _printable(raw, "it")
        if channel in _SPELLINGS:
            return Identity(channel, _SPELLINGS[channel](text), is_verified)
        scope = [_part(organization, "the organization"), _part(integration, "the integration")]
        return Identity(channel, "/".join([*scope, text]), is_verified)
    except ValueError as reason:
        raise ValueError(f"{channel}: {reason}") from None


def _printable(raw: object, name: str) -> str:
    if not isinstance(raw, str):
        raise ValueError(f"{name} is no text")  # noqa: TRY004 (a sender's fault, like all others here)
    text = raw.strip()
    if not text:
        raise ValueError(f"{name} is empty")
    if len(text) > RAW_CHARACTERS_MAX:
        raise ValueError(f"{name} has more than {RAW_CHARACTERS_MAX} characters")
    if not text.isprintable():
        raise ValueError(f"{name} has characters that cannot be printed")
    return text


def _part(raw: str, name: str) -> str:
    text = _printable(raw, name)
    if "/" in text:
        raise ValueError(f"{name} has a /, which parts scopes")
    return text


def _email(text: str) -> str:
    # casefold() may lengthen a text, so its length is checked again. A space inside an address is a slip.
    folded = text.casefold()
    local, at, domain = folded.partition("@")
    if not (local and at and domain) or "@" in domain:
        raise ValueError("it has no single @ between two parts")
    if any(character.isspace() for character in folded):
        raise ValueError("it has a space")
    if len(folded) > RAW_CHARACTERS_MAX:
        raise ValueError(f"it has more than {RAW_CHARACTERS_MAX} characters")
    return folded


def _phone(text: str) -> str:
    bare = re.sub(r"[\s()\-]", "", text)
    digits = bare.removeprefix("+").removeprefix("00")
    if not digits.isascii() or not digits.isdigit():
        raise ValueError("it has other characters than digits, +, spaces, dashes and parentheses")
    if not PHONE_DIGITS_MIN <= len(digits) <= PHONE_DIGITS_MAX:
        raise ValueError(f"it has {len(digits)} digits, not {PHONE_DIGITS_MIN} to {PHONE_DIGITS_MAX}")
    return digits


_SPELLINGS: dict[str, Callable[[str], str]] = {"email": _email, "phone": _phone}
