"""Which part of the API an operation belongs to, in the order of the reference."""

import re

PRIVACY = "Export and erasure"
ADMIN = "Administration"
# The first pattern that fits `METHOD /path`.
PATTERNS = (
    (r"DELETE /v1/(users|leads)/[^/]+$|.*/export$|.*/lift$|.* /v1/erasures/.*", PRIVACY),
    (r".* /v1/events$", "Events"),
    (r".* /v1/(questions|agents|stats|subscriptions)\b.*|.*/answers$", "Questions"),
    (r".*/(balance|ledger|holds|redemptions|clawbacks|rewards)\b.*", "Points and rewards"),
    (r".* /v1/leaderboards/.*|.*/alias$", "Leaderboards"),
    (r".* /v1/users/.*", "Streaks and profile"),
    (r".* /v1/(leads|hooks)\b.*", "Leads"),
    (r".* /v1/webhook-endpoints\b.*", "Outgoing webhooks"),
    (r".* /v1/(rules|review|amnesties|operations)\b.*", ADMIN),
    (r".*", "Service"),
)
ORDER = (
    *("Events", "Streaks and profile", "Leaderboards", "Points and rewards", "Questions", "Leads"),
    *("Outgoing webhooks", PRIVACY, ADMIN, "Service"),
)


def tag_of(method: str, path: str) -> str:
    """Return the tag of an operation: one of ORDER."""
    return next(tag for pattern, tag in PATTERNS if re.fullmatch(pattern, f"{method.upper()} {path}"))
