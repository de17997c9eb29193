"""What the feature-refresh queue is asked for: refreshes and rebuilds."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from adapters.leads.feature_refresh import LEADS_MAX
from adapters.platform.queues import PoisonMessage
from rules.days import stamp, unstamp
from rules.leads.feature_changes import AHEAD_MAX


def check_instant(as_of: datetime, now: datetime) -> None:
    """Raise ValueError for an instant that no clock of ours can be at: features only go forward.

    Example: once computed as of 2062, a lead would be in no window, and in no list, until then.
    """
    if as_of > now + AHEAD_MAX:
        raise ValueError(f"as_of {stamp(as_of)} is more than a day ahead of {stamp(now)}")


def refresh_of(request: Any, now: datetime) -> tuple[datetime, list[str]]:
    """Read {"as_of": stamp, "leads": [id]}; raises PoisonMessage, with the field and the reason."""
    leads = _leads(request, "refresh")
    try:
        as_of = unstamp(request["as_of"])
        if stamp(as_of) != request["as_of"]:
            raise ValueError(request["as_of"])
    except (KeyError, ValueError, AttributeError, TypeError) as error:
        raise PoisonMessage(f"refresh.as_of is no stamp: {error!r}") from None
    try:
        check_instant(as_of, now)
    except ValueError as error:
        raise PoisonMessage(f"refresh.{error}") from None
    return as_of, leads


def rebuild_of(request: Any) -> tuple[list[str], bool]:
    """Read {"leads": [id], "anew"?}; raises PoisonMessage, with the field and the reason.

    anew: what is stored is not believed, not even its version.
    """
    return _leads(request, "rebuild"), request.get("anew") is True


def _leads(request: Any, name: str) -> list[str]:
    if not isinstance(request, Mapping):
        raise PoisonMessage(f"{name} is no object")
    leads = request.get("leads")
    if (
        not isinstance(leads, list)
        or len(leads) > LEADS_MAX
        or not all(isinstance(lead, str) for lead in leads)
    ):
        raise PoisonMessage(f"{name}.leads is no list of at most {LEADS_MAX} ids")
    return leads
