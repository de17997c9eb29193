"""`streakline status`: what is wrong follows from what was seen, and stands in the first line."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from local.operate.stack_status import mapping_trouble
from local.operate.verdict import (
    LATE,
    Consumer,
    Deployment,
    Queue,
    RunningPart,
    as_json,
    as_text,
    problems,
    spoken,
    verdict,
)

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
WELL = Deployment(
    "the laptop cloud",
    NOW,
    (RunningPart("poller", runs=True),),
    (
        Consumer("Engagement", ("ByPoller",), timedelta(seconds=60)),
        Consumer("Leads", ("Enabled",)),
    ),
    {"LeadIngestion": Queue(3, timedelta(minutes=2)), "FeatureRefresh": Queue(9)},
    {"EngagementFailures": 0},
    {"A": "OK", "B": "INSUFFICIENT_DATA"},
    {"api_url": "https://api"},
)


def test_all_is_well() -> None:
    assert problems(WELL) == []
    assert as_text(WELL).splitlines()[0] == "All is well with the laptop cloud."
    assert "Engagement  read by the poller, at most 60 s behind" in as_text(WELL)
    assert as_json(WELL)["is_well"] is True


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a part": (
        {"parts": (RunningPart("poller", runs=False, state="does not run", mend="up"),)},
        "poller does not run",
    ),
    "a silent part": (
        {"parts": (RunningPart("Redis", runs=False, state="does not answer"),)},
        "Redis does not answer",
    ),
    "late batches": (
        {"consumers": (Consumer("Notification", behind=timedelta(minutes=9)),)},
        "Notification is 9 min behind",
    ),
    "a mapping": (
        {"consumers": (Consumer("Leads", ("Disabled",), trouble=mapping_trouble(["Disabled", "Enabled"])),)},
        "Leads is not fed: an event source mapping is Disabled",
    ),
    "an old message": (
        {"queues": {"LeadIngestion": Queue(1, timedelta(minutes=16))}},
        "1 message in LeadIngestion, the oldest for 16 min",
    ),
    "a failure": ({"failures": {"EngagementFailures": 1}}, "1 message in EngagementFailures"),
    "a partner's failure": ({"failures": {"ShipmentFailures": 2}}, "2 messages in ShipmentFailures"),
    "an alarm": ({"alarms": {"ApiServerErrors": "ALARM"}}, "the alarm ApiServerErrors sounds"),
    "what is not seen": ({"unseen": {"alarms": "no right"}}, "alarms cannot be seen: no right"),
}


@pytest.mark.parametrize("kind", WRONG)
def test_what_is_wrong_stands_in_the_first_line(kind: str) -> None:
    change, text = WRONG[kind]
    seen = replace(WELL, **change)
    assert len(problems(seen)) == 1
    first = as_text(seen).splitlines()[0]
    assert first.startswith("Something is wrong with the laptop cloud: ")
    assert text in first
    told = as_json(seen)
    assert told["is_well"] is False
    assert text in told["verdict"]
    assert told["problems"][0]["what"] in first


@pytest.mark.parametrize(
    "change",
    [
        {"consumers": (Consumer("Engagement", behind=timedelta(seconds=200)),), "late": timedelta(minutes=5)},
        {"queues": {"LeadIngestion": Queue(10**6)}},
        {"queues": {"LeadIngestion": Queue(0, timedelta(days=1))}},
        {
            "consumers": (
                Consumer(
                    "Leads", ("Enabling", "Updating"), trouble=mapping_trouble(["Enabling", "Updating"])
                ),
            )
        },
        {"alarms": None},
    ],
)
def test_what_is_under_way_is_not_wrong(change: dict[str, Any]) -> None:
    assert problems(replace(WELL, **change)) == []


def test_of_many_problems_the_first_are_told_and_the_others_counted() -> None:
    seen = replace(WELL, failures={f"Q{number}Failures": 1 for number in range(9)})
    assert verdict(seen).endswith("in Q2Failures; and 6 more.")
    assert "Q8Failures: `streakline queue list --queue Q8Failures`" in as_text(seen)


def test_what_machines_read_has_instants_and_no_guess() -> None:
    told = json.loads(json.dumps(as_json(WELL)))
    assert told["at"] == "2026-03-10T12:00:00.000Z"
    assert told["consumers"]["Engagement"]["behind_seconds"] == 60
    assert told["consumers"]["Leads"] == {"mappings": ["Enabled"], "behind_seconds": None, "trouble": ""}
    assert told["alarms"] == {"known": 2, "not_ok": {"B": "INSUFFICIENT_DATA"}}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (119, "119 s"), (120, "2 min"), (7199, "119 min"), (7260, "2 h 1 min"), (10**6, "11 days")],
)
def test_durations_in_words(seconds: int, text: str) -> None:
    assert spoken(timedelta(seconds=seconds)) == text


def test_a_minute_is_late() -> None:
    assert LATE.total_seconds() == 60  # docs/runbook.md says so
