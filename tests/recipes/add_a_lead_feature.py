"""docs/recipes/add-a-lead-feature.md, step by step, with its example."""

from tests.recipes.common_steps import GENERATED, make_clients, make_models
from tests.recipes.scratch import Scratch, Step

READINGS = "tests/unit/leads/test_feature_readings.py"


def _feature(scratch: Scratch) -> None:
    scratch.replace(
        "rules/leads/features.py",
        """        "campaigns of 90 dates without any reaction, less the newest (setting CampaignGraceDays)",
        CAMPAIGN_DAYS_MAX,
    ),
)
""",
        """        "campaigns of 90 dates without any reaction, less the newest (setting CampaignGraceDays)",
        CAMPAIGN_DAYS_MAX,
    ),
    Feature("frequency_purchases_7d", PURCHASES, Aggregate.COUNT, Unit.COUNT, "orders in 7 dates", 7),
)
""",
    )


def _plain_reading(scratch: Scratch) -> None:
    scratch.after(
        "tests/support/lead_histories.py",
        '        "campaign_ignored": _ignored(own, age, grace_days),\n',
        '        "frequency_purchases_7d": orders(7),\n',
    )


def _columns(scratch: Scratch) -> None:
    for mart in ("live", "recomputed"):
        scratch.after(
            f"sql/models/leads/marts/lead_features_{mart}.yml",
            "campaigns sent in 90 dates that had no reaction, less the newest (setting CampaignGraceDays)\n",
            "  frequency_purchases_7d: orders in 7 dates\n",
        )


def _feature_in_the_docs(scratch: Scratch) -> None:
    scratch.replace(
        "docs/rules/leads.md",
        "\nfrequency_purchases_90d\n",
        "\nfrequency_purchases_7d\nfrequency_purchases_90d\n",
    )


FEATURE = (
    Step("rules/leads/features.py", _feature, READINGS, "frequency_purchases_7d"),
    Step("tests/support/lead_histories.py", _plain_reading, READINGS),
    Step("make models", make_models, GENERATED),
    Step("sql/models/leads/marts/lead_features_live.yml", _columns, GENERATED, "lead_features_live.yml"),
    Step("make clients", make_clients, "tests/unit/clients/test_drift.py"),
    Step("docs/rules/leads.md", _feature_in_the_docs, "tests/unit/platform/test_docs.py"),
)
