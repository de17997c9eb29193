"""The places that a user's phones hold in the table Limits, by which an erasure finds the phones, too."""

from datetime import datetime, timedelta

from adapters.platform.shared_counters import WantedPlace

# A place ends with its subscription, and never by itself.
PLACE_KEPT = timedelta(days=36_500)


def places_of(owner: str) -> str:
    """Return the counter that lists a user's subscriptions."""
    return f"subscriptions#{owner}"


def place_of(owner: str, subscription_id: str, now: datetime) -> WantedPlace:
    """Return the place of one subscription."""
    return WantedPlace(places_of(owner), subscription_id, now + PLACE_KEPT)
