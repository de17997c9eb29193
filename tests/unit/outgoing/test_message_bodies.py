"""docs/webhooks.md and its JSON Schema say what is sent: each type, as the rules make it."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from rules.book.board_rules import BoardPeriod, BoardRule
from rules.book.levels import Level
from rules.book.rewards import Redemption
from rules.engagement.friends import Tie, TieState
from rules.engagement.leagues import Outcome, Zone
from rules.engagement.ledger import Head
from rules.engagement.lots import Hold
from rules.engagement.periods import period_named
from rules.outgoing.derivation import (
    ItemNoticeState,
    OfferedAchievement,
    TieChange,
    UserNoticeState,
    notices_of_achievements,
    notices_of_league,
    notices_of_profile,
    notices_of_redemption,
    notices_of_result,
)
from rules.outgoing.notices import TYPES, Notice, NoticeType, Notification, board_holder
from tests.support.league_town import CLOSED_W48
from tests.support.league_town import TERMS as LEAGUES
from tests.support.message_schema import SCHEMA, problems
from tests.support.parts import modules_of_parts
from tests.support.template import ROOT
from tests.unit.outgoing.test_derive import Customer, noon
from tests.unit.outgoing.test_things import AT

PAGE = (ROOT / "docs" / "webhooks.md").read_text()


def told_of_a_user() -> Iterator[Notice]:
    ann = Customer()
    yield from ann.act(noon(0), 0)
    yield from ann.change(noon(0), total_points=10, head=Head(AT, 1, 10))
    yield from ann.change(noon(0), holds=(Hold("a", 5, "mug", AT, "2026-03-01T13:00:00.000000Z"),))
    for hours in range(2, 40):
        yield from ann.hear(noon(0) + timedelta(hours=hours))
    yield from ann.act(noon(2), 2)
    yield from ann.act(noon(2), 1)
    yield from ann.change(noon(2), chosen_zone="Asia/Tokyo")
    richer = replace(ann.profile, version=99, total_points=30)
    yield from notices_of_profile(ann.told, richer, noon(2), (Level("silver", 20, "Silver"),))[0]
    redemption = Redemption("ann", "2026-03-03T13:00:00.000000Z#0001", "mug", "acme", 120, 3, title="Mug")
    notices, told = notices_of_redemption(ann.told, redemption, ann.told.shown)
    yield from notices
    offered = {"rich": OfferedAchievement("Rich", "a", AT)}
    notices, told = notices_of_achievements(replace(told, seen_forms=frozenset({"a"})), offered, {"rich": AT})
    yield from notices
    yield from notices_of_achievements(told, offered, {})[0]
    outcome = Outcome("2026-W48", "bronze", 1, 90, Zone.UP, 10)
    yield from notices_of_league(told, outcome, LEAGUES, told.shown, CLOSED_W48)[0]


def told_of_friends() -> Iterator[Notice]:
    state = UserNoticeState()
    ties = [Tie("ann", "bob", TieState.REQUEST, AT), Tie("ann", "bob", TieState.FRIEND, AT, "7f3a")]
    ends = [replace(ties[1], state=state, ended_at=AT) for state in (TieState.ENDED, TieState.BLOCKED)]
    for place, tie in enumerate([*ties, *ends, Tie("ann", "bob", TieState.ASKED, AT)]):
        change = TieChange(tie, AT, f"{place + 1}")
        notices, state = change.notices(state, noon(0))
        assert change.notices(state, noon(0)) == ([], state), "a record may come twice"
        yield from notices


def bodies() -> Iterator[tuple[str, bytes]]:
    for number, notice in enumerate(told_of_a_user(), start=1):
        yield notice.type, Notification("ann", number, AT, notice).body
    for number, notice in enumerate(told_of_friends(), start=1):
        yield notice.type, Notification("ann", number, AT, notice).body
    for module in modules_of_parts("notices"):
        yield from module.bodies()
    week = period_named("2026-W48")
    for rule in (BoardRule("all", BoardPeriod.WEEK), BoardRule("classes", BoardPeriod.WEEK, group="class")):
        holder = board_holder(rule.name, week.name)
        (notice,), state = notices_of_result(ItemNoticeState(), rule, week, 8, noon(2))
        assert notices_of_result(state, rule, week, 8, noon(2))[0] == [], "a result is final once"
        yield notice.type, Notification(holder, 1, AT, notice).body
    yield NoticeType.TEST, Notification("test/e", 7, AT, Notice(NoticeType.TEST, {"endpoint_id": "e"})).body


def test_each_type_is_as_the_schema_says() -> None:
    seen = set()
    for kind, body in bodies():
        assert problems(body) == [], body
        seen.add(kind)
    assert seen == set(TYPES)
    assert set(SCHEMA["properties"]["type"]["enum"]) == set(TYPES)


def test_a_reward_without_a_title_is_told_without_one() -> None:
    redemption = Redemption("ann", "2026-03-03T13:00:00.000000Z#0001", "mug", "acme", 120, 3)
    ann = Customer()
    list(ann.act(noon(0), 0))
    (notice,), _ = notices_of_redemption(ann.told, redemption, ann.told.shown)
    assert "title" not in notice.data


@pytest.mark.parametrize("change", [{"more": 1}, {"profile": {}}, {"number": 0}])
def test_another_body_is_none(change: dict[str, object]) -> None:
    _, body = next(bodies())
    content = json.loads(body)
    content["data"] |= change
    assert problems(json.dumps(content).encode())


def test_the_page_names_each_type_with_its_fields_and_its_example_is_one() -> None:
    rows = dict(re.findall(r"^\| `([a-z]+\.[a-z_]+)` \| (.*) \|$", PAGE, re.MULTILINE))
    assert rows.keys() == set(SCHEMA["properties"]["type"]["enum"])
    for kind, told in rows.items():
        fields = SCHEMA["$defs"][kind]["properties"].keys()
        usual = {"user_id", "number", "profile"} if "profile" in fields else set()
        assert fields - usual - set(re.findall(r"`(\w+)`", told)) == set(), kind
    [example] = re.findall(r"^```json\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert problems(example.encode()) == []
