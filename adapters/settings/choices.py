"""What a deployer chooses in the template's parameter Settings.

In this order: how the parameter is read; how functions read a setting that is a list (currencies, exchange
rates, phone regions); the list of all settings, with all that docs/settings.md says of each.
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from rules.leads.features import CAMPAIGN_DAYS_MAX, CAMPAIGN_GRACE_DAYS
from rules.leads.orders import EXPONENTS
from rules.parts import said
from rules.privacy.tombstones import SafeToLog

CURRENCY_PART = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9._:@-]{0,63})=)?([A-Z]{3})", re.ASCII)
EVERYBODY = ""  # the organization of a part without a name: all that have none of their own
RATE_PART = re.compile(r"([A-Z]{3})=(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)
REGION_PART = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9._:@-]{0,63})=)?([A-Z]{2})")
# CloudFormation takes an answer of 4,096 bytes, and Lambda environment variables of as many.
VALUES_BYTES_MAX = 3000
HOT_DAYS, CURATED_DAYS = "EventHotDays", "CuratedRetentionDays"
# Settings that become a lifecycle rule of a bucket: after so many days S3 deletes an object.
BUCKET_SETTINGS = ("RawRetentionDays", "QuarantineRetentionDays", CURATED_DAYS, "PayloadRetentionDays")
DAYS_MAX = 36_500
NO_RULE_DAYS = 3650  # S3 takes no rule without days, so a disabled rule has these
NOTHING_THERE = (
    "there is nothing before or after a semicolon: `sam` cuts off a text with blanks that needs quotes"
)
ORIGINS_ALLOWED = "origins with blanks between them, such as https://login.example.com"
ORIGINS = re.compile(r"(?:https://[A-Za-z0-9.-]+(?::\d{1,5})?(?: +|$))*", re.ASCII)


class SettingRefused(SafeToLog, ValueError):
    """The parameter cannot be read. The message has a sentence for each fault, with the setting's name."""


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting, as docs/settings.md shows it."""

    name: str
    default: str
    allowed: str  # its values in words
    meaning: str  # what it decides, in words
    check: Callable[[str], object]  # raises ValueError, with the setting's name, for a value that is refused


def settings_of(text: str) -> dict[str, str]:
    """Return the value of each setting by its name, given or default; raises SettingRefused.

    text: the parameter, such as `Currency=EUR; RateLimitPerMinute=600`.
    """
    given: dict[str, str] = {}
    faults: list[str] = []
    for part in text.split(";") if text.strip() else ():
        name, equals, value = (each.strip() for each in part.partition("="))
        if not part.strip():
            faults.append(NOTHING_THERE)
        elif not equals:
            faults.append(f"{part.strip()!r} is no setting and its value, such as Currency=EUR")
        elif name not in SETTINGS:
            near = difflib.get_close_matches(name, SETTINGS, 1)
            hint = f"did you mean {near[0]}?" if near else "docs/settings.md has all"
            faults.append(f"there is no setting {name}; {hint}")
        elif name in given:
            faults.append(f"{name} is given twice")
        else:
            given[name] = value
            try:
                SETTINGS[name].check(value)
            except ValueError as error:
                faults.append(str(error))
    values = {name: given.get(name, each.default) for name, each in SETTINGS.items()}
    if not faults and 0 < int(values[CURATED_DAYS]) <= int(values[HOT_DAYS]):
        faults.append(
            f"{HOT_DAYS} must be less than {CURATED_DAYS}: events leave DynamoDB only while the lake has them"
        )
    size = len(json.dumps(values).encode())
    if size > VALUES_BYTES_MAX:
        faults.append(f"all values together have {size} bytes, and {VALUES_BYTES_MAX} are allowed")
    if faults:
        raise SettingRefused(f"Settings: {'; '.join(faults)}")
    return values


def attributes_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Return what the template takes: all settings, and some once more in the form of a bucket or a table."""
    days = {name.removesuffix("Days"): int(settings[name]) for name in BUCKET_SETTINGS}
    return {
        **settings,
        **{f"{name}Rule": "Enabled" if each else "Disabled" for name, each in days.items()},
        **{f"{name}RuleDays": str(each or NO_RULE_DAYS) for name, each in days.items()},
        "EventsExpire": "false" if int(settings[HOT_DAYS]) else "true",
    }


def settings_table() -> str:
    """Return a Markdown table of all settings."""
    rows = (
        f"| `{setting.name}` | {f'`{setting.default}`' if setting.default else 'nothing'} "
        f"| {setting.allowed} | {setting.meaning} |\n"
        for setting in SETTINGS.values()
    )
    return "| setting | default | values | what it is |\n|---|---|---|---|\n" + "".join(rows)


@cache
def currencies(setting: str) -> Mapping[str, str]:
    """Read the setting Currency: `USD acme=EUR`; the part without a name is everybody's.

    Returns codes of ISO 4217 by organization, everybody's under "". Raises ValueError that names the bad
    part. Monetary features are in hundredths. So a currency without hundredths, such as JPY, is refused.
    """
    by_organization: dict[str, str] = {}
    for part in setting.split():
        match = CURRENCY_PART.fullmatch(part)
        if match is None or (match[1] or EVERYBODY) in by_organization:
            raise ValueError(
                f"Currency: {part} is not one currency, such as EUR, or one of an organization, acme=EUR"
            )
        if match[2] in EXPONENTS:
            raise ValueError(f"Currency: {match[2]} has no hundredths, which monetary features are in")
        by_organization[match[1] or EVERYBODY] = match[2]
    if EVERYBODY not in by_organization:
        raise ValueError("Currency: everybody's is missing, such as USD")
    return by_organization


def currency_of(setting: str, organization_id: str | None) -> str:
    """Return the currency of an organization's monetary features: its own, or everybody's."""
    by_organization = currencies(setting)
    return by_organization.get(organization_id or EVERYBODY, by_organization[EVERYBODY])


@cache
def exchange_rates(setting: str) -> Mapping[str, Decimal]:
    """Read the setting ExchangeRates: `EUR=1.08 JPY=0.0067`; returns the rate by ISO 4217 code.

    Raises ValueError that names the bad part: one that is no rate, 0, or a currency's second rate.
    """
    rates: dict[str, Decimal] = {}
    for part in setting.split():
        match = RATE_PART.fullmatch(part)
        if match is None or not Decimal(match[2]) or match[1] in rates:
            raise ValueError(f"ExchangeRates: {part} is not one rate above 0, such as EUR=1.08")
        rates[match[1]] = Decimal(match[2])
    return rates


@cache
def regions(setting: str) -> dict[str, str]:
    """Read the setting PhoneRegions: `US acme=DE shop.br=BR`; the part without a name is everybody's.

    Returns ISO 3166 codes by organization, everybody's under "". Raises ValueError that names the bad part.
    """
    by_organization: dict[str, str] = {}
    for part in setting.split():
        match = REGION_PART.fullmatch(part)
        if match is None:
            raise ValueError(f"PhoneRegions: {part} is neither a region, such as DE, nor organization=DE")
        by_organization[match[1] or EVERYBODY] = match[2]
    return by_organization


def region_of(setting: str, organization_id: str) -> str | None:
    """Return an organization's region; None if neither it nor everybody has one."""
    by_organization = regions(setting)
    return by_organization.get(organization_id, by_organization.get(EVERYBODY))


def _number(name: str, default: int, meaning: str, least: int, most: int | None = None) -> Setting:
    allowed = f"{least} or more" if most is None else f"{least} to {most}"

    def check(value: str) -> None:
        number = int(value) if re.fullmatch(r"\d{1,9}", value, re.ASCII) else -1
        if number < least or (most is not None and number > most):
            raise ValueError(f"{name} must be a whole number, {allowed}, unlike {value!r}")

    return Setting(name, str(default), allowed, meaning, check)


def _days(name: str, meaning: str, least: int) -> Setting:
    allowed = f"0, or {least} to {DAYS_MAX}"

    def check(value: str) -> None:
        number = int(value) if re.fullmatch(r"\d{1,5}", value, re.ASCII) else -1
        if number and not least <= number <= DAYS_MAX:
            raise ValueError(f"{name} must be a whole number of days, {allowed}, unlike {value!r}")

    return Setting(name, "0", allowed, meaning, check)


def _origins(value: str) -> None:
    if not ORIGINS.fullmatch(value):
        raise ValueError(f"SignInOrigins must be {ORIGINS_ALLOWED}, unlike {value!r}")


_ALL = (
    _number(
        "RateLimitPerMinute",
        1200,
        "events that one user may send in a minute, and answers that one agent may relay; admins and "
        "producers are not limited",
        1,
    ),
    _number(
        "CommandsPerMinute",
        60,
        "commands (redemptions, freezes, pauses, zones), questions and subscriptions that one caller "
        "may send in a minute, of each kind; a shop's server may send as many for each user, and a "
        "hundred times as many in all",
        1,
    ),
    _number("ReadsPerMinute", 600, "reads that one caller may do in a minute; admins are not limited", 100),
    _number(
        "ExportsPerDay",
        10,
        "exports of persons that one caller may ask for in a day; admins are not limited",
        1,
    ),
    *(_number(*each) for part in said("settings") for each in part.numbers),
    Setting(
        "Currency",
        "USD",
        "`USD acme=EUR`, codes of ISO 4217 with two decimals",
        "the currency of an organization's monetary features: here the euro for acme, the "
        "dollar for all others; amounts in other currencies are kept apart",
        currencies,
    ),
    Setting(
        "ExchangeRates",
        "",
        "`EUR=1.08 JPY=0.0067`",
        "what one unit of a currency is worth in everybody's Currency; a lead's money has a total only "
        "if every rate is given",
        exchange_rates,
    ),
    Setting(
        "PhoneRegions",
        "",
        "`US acme=DE shop=BR`",
        "the country of telephone numbers without a country code: here Germany for acme, Brazil for "
        "shop, the USA for all others; without a region such numbers are ignored",
        regions,
    ),
    _number(
        "CampaignGraceDays",
        CAMPAIGN_GRACE_DAYS,
        "campaign_ignored counts a campaign so many dates after it was sent to a lead, if the lead never "
        "reacted; reads follow a new value at once, stored features at their next refresh, the "
        "warehouse in the next night",
        1,
        CAMPAIGN_DAYS_MAX - 1,
    ),
    _number(
        "SparkFromGb",
        20,
        "if a night's raw objects have more GB, zipped, the Glue job curates them first; 0: never",
        0,
        1_000_000,
    ),
    Setting(
        "SignInOrigins",
        "",
        ORIGINS_ALLOWED,
        "further origins that the page may call to sign people in with your own issuer (`SignInClientId`)",
        _origins,
    ),
    _days(
        "RawRetentionDays",
        "how long the lake keeps raw objects; 0: for ever. A rebuild of older days uses the curated rows and "
        "refused lines, and the report says so",
        180,
    ),
    _days("QuarantineRetentionDays", "how long the lake keeps refused lines; 0: for ever", 30),
    _days(
        CURATED_DAYS,
        "how long the lake keeps curated files that no nightly run needs (events, questions, stats, and "
        "all of leads); 0: for ever. Days, ledger, profiles and responses stay, and the warehouse keeps its "
        "rows",
        180,
    ),
    _days(
        HOT_DAYS,
        "after how many days an event is deleted from DynamoDB, at the price of a write, if the lake has the "
        f"same values; fewer than `{CURATED_DAYS}`. 0: events expire after 90 days, which costs nothing, "
        "even if the lake lacks them",
        90,
    ),
    _days(
        "PayloadRetentionDays",
        "how long the webhooks themselves are kept, in the payload bucket and in DynamoDB; 0: for ever",
        30,
    ),
    *(_days(*each) for part in said("settings") for each in part.days),
)
SETTINGS = {each.name: each for each in _ALL}
