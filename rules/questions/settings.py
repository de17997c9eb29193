"""The settings of questions (adapters/settings/choices.py)."""

from rules.parts import PartSettings

SETTINGS = PartSettings(
    numbers=(
        ("OpenQuestionsMax", 100, "questions that one agent may have open at once", 1, 1000),
        ("SubscriptionsMax", 20, "phones that one person may have registered", 1, 1000),
    ),
    days=(
        (
            "AnswerTextRetentionDays",
            (
                "how long the words of an answer are kept after its question has closed; 0: for ever. The "
                "chosen option and the length of the text stay"
            ),
            90,
        ),
    ),
)
