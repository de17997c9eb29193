"""The setting PointBoosts."""

import json
from collections.abc import Mapping
from typing import Any

from rules.days import parse_moment
from rules.engagement.points import RULES, Boost


def read_boosts(text: str) -> tuple[Boost, ...]:
    """Read boosts from JSON: [{"since", "until", "factor", "event_types"?}], instants in RFC 3339.

    Raises ValueError for anything else, because a function that cannot tell points must not start.
    """
    try:
        listed = json.loads(text or "[]")
        if not isinstance(listed, list):
            raise TypeError("it is no list")
        return tuple(_boost(each) for each in listed)
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"PointBoosts cannot be read: {error!r}") from None


def _boost(each: Mapping[str, Any]) -> Boost:
    factor, types = each["factor"], each.get("event_types", [])
    if type(factor) is not int or factor < 1:
        raise ValueError("factor is no whole number from 1")
    if not isinstance(types, list) or not RULES.keys() >= set(types):
        raise ValueError("event_types is no list of known types")
    since, until = parse_moment(each["since"]).utc, parse_moment(each["until"]).utc
    return Boost(since, until, factor, frozenset(types))
