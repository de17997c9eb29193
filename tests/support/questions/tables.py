"""The keys and indexes of questions' tables, as tests/infra/test_tables.py has them; and who reads without keys."""

TABLE_KEYS = {
    "Questions": (
        ("question_id", ""),
        {
            "ByStatus": ("status", "created_at"),
            "ByAgentId": ("agent_id", "created_at"),
            "ByClosing": ("status", "closes_at"),
        },
        "expires_at",
        "NEW_IMAGE",
    ),
    "Responses": (
        ("question_id", "response_id"),
        {"ByFingerprint": ("fingerprint_hash", "created_at")},
        "",
        "NEW_IMAGE",
    ),
    "Subscriptions": (
        ("subscription_id", ""),
        {"ByLastNotified": ("active", "last_notified_at")},
        "expires_at",
        "NEW_IMAGE",
    ),
    "UserStats": (
        ("fingerprint_hash", ""),
        {"ByTotalPoints": ("_leaderboard", "total_points")},
        "",
        "NEW_IMAGE",
    ),
}
# Functions that delete items of tables (tests/infra/test_permissions.py)
DELETERS = {
    "QuestionsApiFunction": {"Subscriptions"},
    "PollsApiFunction": {"Limits"},
    **{f"{name}Function": {"Subscriptions"} for name in ("FanOut", "Reminders")},
}
