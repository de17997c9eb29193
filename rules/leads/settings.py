"""The settings of leads (adapters/settings/choices.py).

Functions read here those that are lists: currencies, exchange rates, phone regions.
"""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache

from rules.leads.features import CAMPAIGN_DAYS_MAX, CAMPAIGN_GRACE_DAYS
from rules.leads.orders import EXPONENTS
from rules.parts import PartSettings

CURRENCY_PART = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9._:@-]{0,63})=)?([A-Z]{3})", re.ASCII)
EVERYBODY = ""  # the organization of a part without a name: all that have none of their own
RATE_PART = re.compile(r"([A-Z]{3})=(\d{1,9}(?:\.\d{1,9})?)", re.ASCII)
REGION_PART = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9._:@-]{0,63})=)?([A-Z]{2})")


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


SETTINGS = PartSettings(
    numbers=(
        (
            "CampaignGraceDays",
            CAMPAIGN_GRACE_DAYS,
            (
                "campaign_ignored counts a campaign so many dates after it was sent to a lead, if the lead "
                "never reacted; reads follow a new value at once, stored features at their next refresh, the "
                "warehouse in the next night"
            ),
            1,
            CAMPAIGN_DAYS_MAX - 1,
        ),
    ),
    texts=(
        (
            "Currency",
            "USD",
            "`USD acme=EUR`, codes of ISO 4217 with two decimals",
            (
                "the currency of an organization's monetary features: here the euro for acme, the "
                "dollar for all others; amounts in other currencies are kept apart"
            ),
            currencies,
        ),
        (
            "ExchangeRates",
            "",
            "`EUR=1.08 JPY=0.0067`",
            (
                "what one unit of a currency is worth in everybody's Currency; a lead's money has a total "
                "only if every rate is given"
            ),
            exchange_rates,
        ),
        (
            "PhoneRegions",
            "",
            "`US acme=DE shop=BR`",
            (
                "the country of telephone numbers without a country code: here Germany for acme, Brazil for "
                "shop, the USA for all others; without a region such numbers are ignored"
            ),
            regions,
        ),
    ),
    in_models=("CampaignGraceDays",),
)
