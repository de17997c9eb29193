"""Brings each identity of a lead into its one spelling, so that equal people are found by equal texts.

Decoders (ingest/leads/readers.py) call `identity`, and routes that look a lead up call `named_identity`. The
libraries phonenumbers and idna know countries and scripts. Their tables change with the world, so this module
is not in rules/. Both are imported when they are first needed: a webhook without a telephone number does not
pay for them.

- phone: E.164 digits without the plus sign, as they are dialled today (RENUMBERINGS), then `;ext=` if there
  is an extension, because colleagues share the rest.
- email: NFC, lower case, the domain in ASCII (punycode), without names, links and quotes around it.
- whatsapp, and ids of customers and things: unchanged. The latter stand within their scope.
"""

import re
import unicodedata
from html import unescape
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from ingest.web.caller import invalid_field
from rules.leads.identity import CHANNELS, RANKS, Identity
from rules.leads.settings import region_of
from rules.leads.worthless_identities import is_worthless

if TYPE_CHECKING:
    from phonenumbers import PhoneNumber

RAW_CHARACTERS_MAX = 200
PASTED_CHARACTERS_MAX = 2_000
# Texts around a number: a quote or = of a spreadsheet, `Mobile: `, the `p:` of Facebook's lead forms,
# `(mobile)`, and the .0 of a number that was a float.
AROUND_NUMBER = re.compile(r"""^['"`’‘“=]+|^[^\d+(:]{1,40}:\s*|\s*\([^()\d]*\)$|(?<=\d{7})\.0$|['"`’”]+$""")
WHATSAPP_LINK = re.compile(
    r"(?:https?://)?(?:wa\.me/|api\.whatsapp\.com/send/?\?phone=)\+?(\d+)(?:[?&/].*)?", re.IGNORECASE
)
PHONE_WORDS = re.compile(r"tel:|phone-context|ext(ension|n)?|x", re.IGNORECASE)

# `Ann Berg <ann@example.com>`; a link, also Outlook's [mailto:], Markdown's and Slack's <mailto:|>; a label.
NAME_AND_ADDRESS = re.compile(r"[^<>]*<([^<>]+)>[^\w<>]*")
LINK = re.compile(r"\bmailto:\s*(?://|\?to=)?([^\s?&<>\[\]()|]+)", re.IGNORECASE)
LABEL = re.compile(
    r"^\W*(?:e?-?mail|smtp|to|from)\s*[:=]\s*|^[^@:]{1,40}:\s+|^e?-?mail\s+-\s+|^(?:\d{1,3}[.)]|[-–])\s+",
    re.IGNORECASE,
)
REMARK = re.compile(r"\s+\([^()@]*\)$")  # `ann@example.com (work)`
REFERENCE = re.compile(r"&#?\w{2,8};")  # of HTML
SEPARATORS = re.compile(r"[\s,;]+")
# Signs that may begin an address (RFC 5322, atext); others before it are quotes, brackets and bullets.
QUOTES = "\"'`’”»"
BEGINNINGS = frozenset("_-+#!$%&/=?^~@")
NO_LOCAL_PART = re.compile(r"[\s<>()\[\],;:\\\"\ufffd]")
ASCII_DOMAIN = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*", re.ASCII)

# Numbers that are written in two ways, by country code: (the old or local number without the country code,
# the number by which the same line is dialled today). WhatsApp knows an account by the number that it was
# registered with. Today nobody else has a number of the old form, so no renumbering makes two people one.
RENUMBERINGS: dict[int, tuple[tuple[str, str], ...]] = {
    # Mexico, 2019: no more 1 before mobiles, and no 01, 044 and 045 before calls within the country.
    52: ((r"1(\d{10})", r"+52\1"), (r"0(?:1|4[45])(\d{10})", r"+52\1")),
    # Argentina: 9 before a mobile that is called from abroad; people leave it out. No mobile has the number
    # of a fixed line, so a fixed line may have the 9, too.
    54: (
        (r"([1-3]\d{9})", r"+549\1"),
        (r"9(11)15(\d{8})", r"+549\1\2"),  # the 15 of calls within the country, too
        (r"9([23]\d\d)15(\d{7})", r"+549\1\2"),
        (r"9([23]\d{3})15(\d{6})", r"+549\1\2"),
    ),
    # Brazil, 2012 to 2016: mobiles got a ninth digit.
    55: ((r"([1-9]\d)([6-9]\d{7})", r"+55\g<1>9\2"),),
    # Colombia, 2021: fixed lines got 60 before their area.
    57: ((r"([124-8]\d{7})", r"+5760\1"),),
    # Vietnam, 2018: mobiles of eleven digits got ten.
    84: (
        (r"16([2-9]\d{7})", r"+843\1"),
        (r"120(\d{7})", r"+8470\1"),
        (r"121(\d{7})", r"+8479\1"),
        (r"122(\d{7})", r"+8477\1"),
        (r"12([68]\d{7})", r"+847\1"),
        (r"12([345]\d{7})", r"+848\1"),
        (r"127(\d{7})", r"+8481\1"),
        (r"129(\d{7})", r"+8482\1"),
        (r"18([68]\d{7})", r"+845\1"),
        (r"199(\d{7})", r"+8459\1"),
    ),
    # Ivory Coast, 2021: two digits that name the operator, which the second digit of a mobile, and the third
    # of a fixed line, had told before.
    225: (
        (r"([04-9][0-3]\d{6})", r"+22501\1"),
        (r"([04-9][4-6]\d{6})", r"+22505\1"),
        (r"([04-9][7-9]\d{6})", r"+22507\1"),
        (r"([23]\d0\d{5})", r"+22525\1"),
        (r"([23]\d8\d{5})", r"+22521\1"),
        (r"([23]\d{7})", r"+22527\1"),
    ),
    # Benin, 2024: 01 before all numbers.
    229: ((r"(\d{8})", r"+22901\1"),),
    # Mauritius, 2013: 5 before mobiles.
    230: ((r"([79]\d{6})", r"+2305\1"),),
    # Cameroon, 2014: 6 before mobiles, 2 before fixed lines.
    237: ((r"([5-9]\d{7})", r"+2376\1"), (r"([23]\d{7})", r"+2372\1")),
    # Gabon, 2019: a digit of the operator, and the 0 stays at home.
    241: ((r"0?(1\d{6})", r"+2411\1"), (r"0?([256]\d{6})", r"+2416\1"), (r"0?([47]\d{6})", r"+2417\1")),
    # Mobiles of Palestine are called by both codes.
    972: ((r"(5[69]\d{7})", r"+970\1"),),
}


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

    organization, integration: the source, which is the scope of customers, devices and cookies. is_verified:
    whether that source proves the identity. region: the organization's (ISO 3166, such as DE), in which
    numbers without a country code are read; None: such numbers are refused.
    Raises ValueError, with channel and reason, also for an identity that identifies nobody.
    """
    if channel not in RANKS:
        raise ValueError(f"{channel} is no channel: there are {', '.join(RANKS)}")
    try:
        spelled = _spelled(channel, raw, region)
        if is_worthless(channel, spelled):
            raise ValueError("it identifies nobody")
        if not CHANNELS[RANKS[channel]].is_scoped:
            return Identity(channel, spelled, is_verified)
        scope = [_scope_part(organization, "the organization"), _scope_part(integration, "the integration")]
        return Identity(channel, "/".join([*scope, spelled]), is_verified)
    except ValueError as reason:
        raise ValueError(f"{channel}: {reason}") from None


def _spelled(channel: str, raw: str, region: str | None) -> str:
    """Return a raw value in the one spelling of its channel, still without a scope."""
    if channel == "email":
        return _email(raw)
    if channel == "phone":
        return _phone(_printable(_visible_text(raw), "it"), region)
    text = _printable(raw, "it")
    if channel == "whatsapp" and any(character.isspace() for character in text):
        raise ValueError("it has a space")
    return text


def _visible_text(raw: str) -> str:
    """Return a text without invisible characters (category Cf), with plain blanks in place of others."""
    visible = (character for character in raw if unicodedata.category(character) != "Cf")
    return re.sub(r"\s", " ", "".join(visible))


def _printable(raw: str, name: str) -> str:
    """Return a text without blanks around it. name: what the error calls it."""
    text = raw.strip()
    if not text:
        raise ValueError(f"{name} is empty")
    if len(text) > RAW_CHARACTERS_MAX:
        raise ValueError(f"{name} has more than {RAW_CHARACTERS_MAX} characters")
    if not text.isprintable():
        raise ValueError(f"{name} has characters that cannot be printed")
    return text


def _scope_part(raw: str, name: str) -> str:
    text = _printable(raw, name)
    if "/" in text:
        raise ValueError(f"{name} has a /, which parts scopes")
    return text


def _email(raw: str) -> str:
    """Return the address in a pasted text in its one spelling."""
    if len(raw) > PASTED_CHARACTERS_MAX:
        raise ValueError(f"it has more than {RAW_CHARACTERS_MAX} characters")
    # Lower case and not casefold(): strasse@ and straße@ are two mailboxes. It may undo NFC.
    lower = unicodedata.normalize("NFC", unicodedata.normalize("NFC", _address_in(raw)).lower())
    if not lower:
        raise ValueError("it is empty")
    local, at, domain = lower.partition("@")
    domain = domain.partition("?")[0]
    while domain and unicodedata.category(domain[-1])[0] not in "LNM":  # a quote or a dot at its end
        domain = domain[:-1]
    if not (local and at and domain) or "@" in domain:
        raise ValueError("it has no single @ between two parts")
    if any(character.isspace() for character in local + domain):
        raise ValueError("it has a space")
    if not lower.isprintable():
        raise ValueError("it has characters that cannot be printed")
    if NO_LOCAL_PART.search(local):
        raise ValueError("it has signs before the @ that no address has")
    address = f"{local}@{_domain(domain)}"
    if len(address) > RAW_CHARACTERS_MAX:
        raise ValueError(f"it has more than {RAW_CHARACTERS_MAX} characters")
    return address


def _address_in(raw: str) -> str:
    """Return the address in a pasted text: without a name, a link, quotes, and letters of double width.

    Each step takes away what one kind of sender puts around an address.
    """
    # Characters: double width, HTML's references, %40 for @, line breaks beside the @.
    unescaped = REFERENCE.sub(lambda match: unescape(match[0]), "".join(map(_single_width, raw)))
    decoded = unescaped if "@" in unescaped else unquote(unescaped)
    text = _visible_text(re.sub(r"[^\S ]*[@＠][^\S ]*", "@", decoded)).strip()
    # The same address several times.
    copies = {*SEPARATORS.split(text.lower())} - {""}
    if len(copies) == 1:
        text = copies.pop()
    # A name, a link, a label, a remark, and what stands before the address, such as a bullet.
    if named := NAME_AND_ADDRESS.fullmatch(text):
        text = named[1]
    if link := LINK.search(text):
        text = _visible_text(unquote(link[1]))
    text = REMARK.sub("", LABEL.sub("", text)).strip()
    while text and text[0] not in BEGINNINGS and unicodedata.category(text[0])[0] in "PSZM":
        text = text[1:]
    local, at, domain = text.partition("@")
    return f"{local.rstrip(QUOTES)}{at}{domain}"


def _single_width(character: str) -> str:
    is_wide = unicodedata.decomposition(character).startswith(("<wide>", "<narrow>", "<small>"))
    return unicodedata.normalize("NFKC", character) if is_wide else character


def _domain(text: str) -> str:
    """Return a domain in ASCII."""
    if text.isascii():
        if not all(text.split(".")):
            raise ValueError("its domain has an empty part")
        if ASCII_DOMAIN.fullmatch(text) is None:
            raise ValueError("its domain is none: it has signs that no domain has")
        return text
    import idna  # noqa: PLC0415 (see above)

    try:
        return idna.encode(text, uts46=True).decode().removesuffix(".")
    except idna.IDNAError as reason:
        raise ValueError(f"its domain is none: {reason}") from None


def _phone(text: str, region: str | None) -> str:
    """Return a telephone number as E.164 digits, as it is dialled today."""
    import phonenumbers as library  # noqa: PLC0415 (see above)

    if link := WHATSAPP_LINK.fullmatch(text):
        text = f"+{link[1]}"
    if "phone-context" not in text:
        text = AROUND_NUMBER.sub("", text).strip()
    if any(character.isalpha() for character in PHONE_WORDS.sub("", text)):
        raise ValueError("it has letters")
    is_international = text.lower().removeprefix("tel:").lstrip().startswith(("+", "＋"))
    # The first valid reading counts. Without one, the first of a possible length does, because the library's
    # tables may lack a new range of numbers.
    possible_number = None
    for reading, reading_region in _readings(text, region, is_international=is_international):
        try:
            number = library.parse(reading, reading_region)
        except library.NumberParseException:
            continue
        number = _number_of_today(number)
        if library.is_valid_number(number):
            return _e164(number)
        has_country = bool(reading_region) or is_international
        is_possible = library.is_possible_number_with_reason(number) == library.ValidationResult.IS_POSSIBLE
        if possible_number is None and has_country and is_possible:
            possible_number = number
    if possible_number is None:
        raise ValueError("it is no telephone number" + ("" if region else " with its country code"))
    return _e164(possible_number)


def _readings(text: str, region: str | None, *, is_international: bool) -> list[tuple[str, str | None]]:
    """Return (text, region) of each reading of a number: as it is written, and with a plus sign before it."""
    if is_international or "phone-context" in text:
        return [(text, region)]
    plus = re.sub(r"^[\s(]*(00)?", "+", text, count=1)
    return [*([(text, region)] if region else []), (plus, None)]


def _number_of_today(number: "PhoneNumber") -> "PhoneNumber":
    """Return the number by which the same line is dialled today, see RENUMBERINGS."""
    import phonenumbers as library  # noqa: PLC0415 (see above)

    old = library.national_significant_number(number)
    for old_form, today in RENUMBERINGS.get(number.country_code or 0, ()):
        if match := re.fullmatch(old_form, old):
            renumbered = library.parse(match.expand(today))
            renumbered.extension = number.extension
            return renumbered
    return number


def _e164(number: "PhoneNumber") -> str:
    import phonenumbers as library  # noqa: PLC0415 (see above)

    digits = library.format_number(number, library.PhoneNumberFormat.E164).removeprefix("+")
    return f"{digits};ext={number.extension}" if number.extension else digits


def named_identity(body: dict[str, Any], phone_regions: str) -> Identity:
    """Return the address, number or id in a body of LOOKUP; raises 422. phone_regions: the setting."""
    channels = [channel for channel in ("email", "phone", "whatsapp") if channel in body]
    if len(channels) != 1:
        raise invalid_field("email", "is missing, or there is a phone or an id of WhatsApp's too")
    (channel,), organization = channels, body["organization_id"]
    region = region_of(phone_regions, organization)
    try:
        return identity(channel, body[channel], organization, "lookup", is_verified=False, region=region)
    except ValueError as reason:
        raise invalid_field(channel, str(reason).removeprefix(f"{channel}: ")) from None
