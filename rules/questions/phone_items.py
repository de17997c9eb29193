"""What the lake keeps of phones, which are items of the table Subscriptions (rules/lake/table_items.py).

It keeps their owners' choices, tokens and endpoints. If a phone is gone, a row says so. A week later the
phone's older rows leave the lake (analytics/questions/gone_phones.py).
"""

from rules.lake.kept_tables import Image, KeptTable

PHONES, TOKEN, CHANGED = "Subscriptions", "fcm_token", "is_changed"
# A subscription's attributes that follow from nothing else. Its position in the index follows from them. The
# messages that were sent to it are in the entity notifications.
PHONE_ATTRIBUTES = frozenset(
    {
        *("subscription_id", "owner", TOKEN, "endpoint_arn", "audience", "min_interval_minutes", "timezone"),
        *("quiet_hours", "streak_reminders", "reminders_at", "language"),
        *("created_at", "updated_at", "dead_at"),
    }
)


def _is_changed_phone(image: Image) -> bool:
    return "owner" in image and CHANGED in image


def _owner(image: Image) -> str:
    return str(image["owner"]["S"])


def _is_phone(key: Image) -> bool:
    """Whether a removed item was a phone's own, and no marker or claim beside it."""
    return "#" not in key["subscription_id"]["S"]


TABLES = {
    PHONES: KeptTable(
        ("subscription_id",),
        PHONE_ATTRIBUTES,
        is_kept=_is_changed_phone,
        user_of=_owner,
        is_removal_kept=_is_phone,
        is_restored_apart=True,
    )
}
