"""In which currency an organization's own money is: monetary features add up amounts of that one alone."""

import re
from collections.abc import Mapping
from functools import cache

from rules.leads.orders import EXPONENTS

PART = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9._:@-]{0,63})=)?([A-Z]{3})", re.ASCII)
EVERYBODY = ""


@cache
def currencies(setting: str) -> Mapping[str, str]:
    """Read the setting Currency: `USD acme=EUR`; the one without a name is everybody's.

    Returns codes of ISO 4217 by organization, everybody's under "". Raises ValueError, with the bad part.
    Monetary features are in hundredths. So a currency without them, such as JPY, is nobody's own: it is kept
    apart.
    """
    found: dict[str, str] = {}
    for part in setting.split():
        match = PART.fullmatch(part)
        if match is None or (match[1] or EVERYBODY) in found:
            raise ValueError(
                f"Currency: {part} is not one currency, such as EUR, or one of an organization, acme=EUR"
            )
        if match[2] in EXPONENTS:
            raise ValueError(f"Currency: {match[2]} has no hundredths, which monetary features are in")
        found[match[1] or EVERYBODY] = match[2]
    if EVERYBODY not in found:
        raise ValueError("Currency: everybody's is missing, such as USD")
    return found


def currency_of(setting: str, organization_id: str | None) -> str:
    """Return an organization's own currency: its own, or everybody's."""
    known = currencies(setting)
    return known.get(organization_id or EVERYBODY, known[EVERYBODY])
