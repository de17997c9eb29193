"""The one spelling of each identity, by the libraries of the field: phonenumbers and idna.

They are not in rules/, because what they know of countries and scripts changes with the world. Both are
imported when they are first needed: a webhook without a telephone number does not pay for them.

phone: E.164 digits without the plus sign, then `;ext=` if there is an extension, because colleagues share the
rest. email: NFC, lower case, the domain in ASCII (punycode). Ids of customers and things: as they are, within
their scope.
"""

import re
import unicodedata
from typing import TYPE_CHECKING, Any

from adapters.settings.phone_regions import region_of
from ingest.web.caller import invalid_field
from rules.leads.identity.identities import RANKS, Identity
from rules.leads.identity.worthless import is_worthless

if TYPE_CHECKING:
    from phonenumbers import PhoneNumber

RAW_CHARACTERS_MAX = 200
SPOKEN = re.compile(r"tel:|phone-context|ext(ension|n)?|x", re.IGNORECASE)


def identity(  # noqa: PLR0913 (an identity, and where it comes from)
    channel: str,
    raw: str,
    organization: str,
    integration: str,
    *,
    is_verified: bool,
    region: str | None = None,
) -> Identity:
    """Return an identity in its one spelling.

    organization, integration: where it comes from; the scope of customers, devices and cookies. is_verified:
    whether that source proves it. region: the organization's (ISO 3166, such as DE), in which numbers without
    a country code are read; None: such numbers are refused.
    Raises ValueError, with channel and reason, also for what identifies nobody.
    """
    if channel not in RANKS:
        raise ValueError(f"{channel} is no channel: there are {', '.join(RANKS)}")
    try:
        bare = _bare(channel, raw, region)
        if is_worthless(channel, bare):
            raise ValueError("it identifies nobody")
        if channel in ("email", "phone"):
            return Identity(channel, bare, is_verified)
        scope = [_part(organization, "the organization"), _part(integration, "the integration")]
        return Identity(channel, "/".join([*scope, bare]), is_verified)
    except ValueError as reason:
        raise ValueError(f"{channel}: {reason}") from None


def _bare(channel: str, raw: object, region: str | None) -> str:
    if channel == "phone" and isinstance(raw, str):
        return _phone(_printable(_seen(raw), "it"), region)
    text = _printable(raw, "it")
    return _email(text) if channel == "email" else text


def _seen(raw: str) -> str:
    """Return what one sees of a number: other blanks are blanks, marks of direction are nothing."""
    return re.sub(r"\s", " ", "".join(each for each in raw if unicodedata.category(each) != "Cf"))


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
    # Lower case and not casefold(): strasse@ and straße@ are two mailboxes. A space inside is a slip.
    folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).lower())
    local, at, domain = folded.partition("@")
    if not (local and at and domain) or "@" in domain:
        raise ValueError("it has no single @ between two parts")
    if any(character.isspace() for character in folded):
        raise ValueError("it has a space")
    address = f"{local}@{_domain(domain)}"
    if len(address) > RAW_CHARACTERS_MAX:
        raise ValueError(f"it has more than {RAW_CHARACTERS_MAX} characters")
    return address


def _domain(text: str) -> str:
    if text.isascii():
        domain = text.removesuffix(".")
        if not all(domain.split(".")):
            raise ValueError("its domain has an empty part")
        return domain
    import idna  # noqa: PLC0415 (see above)

    try:
        return idna.encode(text, uts46=True).decode().removesuffix(".")
    except idna.IDNAError as reason:
        raise ValueError(f"its domain is none: {reason}") from None


def _phone(text: str, region: str | None) -> str:
    import phonenumbers as library  # noqa: PLC0415 (see above)

    if any(character.isalpha() for character in SPOKEN.sub("", text)):
        raise ValueError("it has letters")
    is_international = text.lower().removeprefix("tel:").lstrip().startswith(("+", "＋"))
    possible = None
    for written, where in _readings(text, region, is_international=is_international):
        try:
            number = library.parse(written, where)
        except library.NumberParseException:
            continue
        number = _mobile(number)
        if library.is_valid_number(number):
            return _e164(number)
        if library.is_possible_number_with_reason(number) == library.ValidationResult.IS_POSSIBLE:
            possible = possible or (number if where or is_international else None)
    if possible is None:
        raise ValueError("it is no telephone number" + ("" if region else " with its country code"))
    return _e164(possible)


def _readings(text: str, region: str | None, *, is_international: bool) -> list[tuple[str, str | None]]:
    """Return how a number may be meant: as written, in the region; as one whose plus sign was left out."""
    if is_international or "phone-context" in text:
        return [(text, region)]
    plus = re.sub(r"^[\s(]*(00)?", "+", text, count=1)
    return [*([(text, region)] if region else []), (plus, None)]


def _mobile(number: "PhoneNumber") -> "PhoneNumber":
    """Return a number as it is dialled today: WhatsApp has old forms of Brazilian and Mexican mobiles.

    Brazil's mobiles got a ninth digit, 9, after the area code; Mexico's lost the 1 after the country code.
    """
    national = str(number.national_number)
    if number.country_code == 55 and re.fullmatch(r"[1-9]\d[6-9]\d{7}", national):
        number.national_number = int(f"{national[:2]}9{national[2:]}")
    if number.country_code == 52 and re.fullmatch(r"1\d{10}", national):
        number.national_number = int(national[1:])
    return number


def _e164(number: "PhoneNumber") -> str:
    import phonenumbers as library  # noqa: PLC0415 (see above)

    digits = library.format_number(number, library.PhoneNumberFormat.E164).removeprefix("+")
    return f"{digits};ext={number.extension}" if number.extension else digits


def named_identity(body: dict[str, Any], phone_regions: str) -> Identity:
    """Return the address or number that a body of LOOKUP names; raises 422. phone_regions: the setting."""
    channels = [each for each in ("email", "phone") if each in body]
    if len(channels) != 1:
        raise invalid_field("email", "is missing, or there is a phone too")
    (channel,), organization = channels, body["organization_id"]
    region = region_of(phone_regions, organization)
    try:
        return identity(channel, body[channel], organization, "lookup", is_verified=False, region=region)
    except ValueError as reason:
        raise invalid_field(channel, str(reason).removeprefix(f"{channel}: ")) from None
