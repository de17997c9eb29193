"""Values of questions' settings: at both ends, and beyond (tests/unit/platform/test_choices.py)."""

NUMBERS = {
    "OpenQuestionsMax": (("1", "1000"), ("0", "1001")),
    "SubscriptionsMax": (("1", "1000"), ("0", "1001")),
    "AnswerTextRetentionDays": (("0", "90", "36500"), ("1", "89", "36501")),
}
