"""In which region an organization's people live: there numbers without a country code are read."""

import re
from functools import cache

ORGANIZATION = re.compile(r"(?:([A-Za-z0-9][A-Za-z0-9._:@-]{0,63})=)?([A-Z]{2})")


@cache
def regions(setting: str) -> dict[str, str]:
    """Read the setting PhoneRegions: `US acme=DE shop.br=BR`; the one without a name is everybody's.

    Returns ISO 3166 codes by organization, everybody's under "". Raises ValueError that names the bad part.
    """
    found: dict[str, str] = {}
    for part in setting.split():
        match = ORGANIZATION.fullmatch(part)
        if match is None:
            raise ValueError(f"PhoneRegions: {part} is neither a region, such as DE, nor organization=DE")
        found[match[1] or ""] = match[2]
    return found


def region_of(setting: str, organization_id: str) -> str | None:
    """Return an organization's region; None if neither it nor everybody has one."""
    known = regions(setting)
    return known.get(organization_id, known.get(""))
