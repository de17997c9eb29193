"""The step of the nightly run that compares answers, beside that of users."""

import json
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from analytics.lake.layout import ANSWERS_COMPARED
from analytics.questions.reconcile_answers import answers_step
from tests.integration.test_reconcile import town
from tests.support.town import SHARDS, Town

__all__ = ["town"]  # the fixture
SETTINGS = SimpleNamespace(responses_table="Responses", user_stats_table="UserStats", stats_shards=SHARDS)


def test_answers_are_compared_again_after_a_night_over_named_dates(town: Town) -> None:
    nights: dict[str, dict[str, Any]] = {"night": {}, "dates": {"from": "2026-03-01", "to": "2026-03-02"}}
    compared = []
    for run_id, dates in nights.items():
        town.now += timedelta(days=1)
        town.reconcile(run_id, **dates)
        answers_step(SETTINGS, town.dynamodb)(town.objects, {"run_id": run_id, "repair": True}, town.now)
        compared.append(json.loads(town.objects.get(ANSWERS_COMPARED))["compared_at"])
    assert compared[0] == compared[1]
