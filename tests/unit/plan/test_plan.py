"""The planner: README tells its dollars, more users never cost less, and its price list may be replaced."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.units.standing import fires_a_day
from local.plan import cost
from local.plan.cost import TRAFFIC_OF_PARTS, Traffic, cost_of, day_of, limits, path_at_size, units
from local.plan.plan_command import SIZES, by_service, lines, plain_data
from local.plan.price_list import PRICES, BadPriceList, Price, PriceList, fact, read_prices
from rules.parts import ALL_PARTS, Part
from rules.turns import NIGHTS
from tests.support.template import ROOT

# | `small` (default) | $16 | $50 | $22 | ...
ROW = re.compile(r"^\| `(\w+)`( \[without)?[^|]*\| \$(\d+) \| \$(\d+) \| \$(\d+) \|", re.MULTILINE)
TOLD = {
    f"{size}{without}": tuple(map(int, dollars))
    for size, without, *dollars in ROW.findall((ROOT / "README.md").read_text())
}
NAMES = [each.name for each in TRAFFIC_OF_PARTS]
TRAFFIC = Traffic(daily_actives=5000, of_parts=dict.fromkeys(NAMES, 50.0))
OURS = read_prices()
OF_BOARDS = re.compile(r"board\.period\.|league\.")


@pytest.mark.parametrize("size", SIZES)
def test_the_readme_tells_what_a_size_costs(size: str) -> None:
    plan = cost_of(Traffic(daily_actives=10_000), size, OURS)
    costs = sum(plan.idle.values()), plan.dollars, plan.per_million_events
    # A new column or feature moves them by cents, which is no reason to touch the README.
    assert TOLD[size] == pytest.approx(costs, rel=0.01, abs=1)


def test_the_readme_tells_what_small_costs_without_leads_and_questions() -> None:
    plan = cost_of(Traffic(daily_actives=10_000), "small", OURS, ())
    costs = sum(plan.idle.values()), plan.dollars, plan.per_million_events
    assert TOLD["small [without"] == pytest.approx(costs, rel=0.01, abs=1)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("part", Part)
def test_a_part_that_is_left_out_costs_nothing(size: str, part: Part) -> None:
    less = cost_of(Traffic(daily_actives=10_000), size, OURS, ALL_PARTS - {part})
    assert sum(less.idle.values()) < sum(cost_of(Traffic(daily_actives=10_000), size, OURS).idle.values())
    if part is Part.LEADS:
        assert not {name for name in less.idle if name.startswith(("aurora", "rdsdata", "proxy"))}


@pytest.mark.parametrize(
    ("part", "traffic"),
    [(each.part, Traffic(1, of_parts={each.name: 1})) for each in TRAFFIC_OF_PARTS],
)
def test_traffic_of_a_part_that_is_left_out_is_refused(part: str, traffic: Traffic) -> None:
    with pytest.raises(ValueError, match=f"there is traffic of {part}, and the deployment leaves {part} out"):
        cost_of(traffic, "small", OURS, ())


@pytest.mark.parametrize("size", SIZES)
def test_nobody_costs_what_stands_idle_and_reaches_no_limit(size: str) -> None:
    """The boards are counted all the same, which is a few cents a month."""
    plan = cost_of(Traffic(0), size, OURS)
    assert plan.dollars == pytest.approx(sum(plan.idle.values()), abs=0.1)
    assert plan.per_million_events is None


traffics = st.builds(
    Traffic,
    daily_actives=st.floats(0, 1e7),
    events_per_user=st.floats(0, 60),
    events_per_batch=st.floats(1, 100),
    retention_days=st.floats(0, 2000),
    of_parts=st.fixed_dictionaries({name: st.floats(0, 1e5) for name in NAMES}),
    boards=st.integers(0, 5),
    leagues=st.integers(0, 1),
)


@given(traffics, st.floats(1, 20))
def test_more_users_never_cost_less_and_services_add_up(traffic: Traffic, factor: float) -> None:
    few = cost_of(traffic, "small", OURS)
    many = cost_of(replace(traffic, daily_actives=traffic.daily_actives * factor), "small", OURS)
    assert many.dollars >= few.dollars * (1 - 1e-3)
    services = [*by_service(few.idle).values(), *by_service(few.running).values()]
    assert sum(services) == pytest.approx(few.dollars)
    assert min(few.running.values()) >= -1e-9


@given(st.floats(1, 60), st.floats(1, 60))
def test_larger_batches_never_cost_more_units(one: float, other: float) -> None:
    days = (
        day_of(
            Traffic(1000, events_per_user=60, events_per_batch=size), units()["sizes"]["small"]["settings"]
        )
        for size in sorted((one, other))
    )
    small, large = (cost.total(day, "write") for day in days)
    assert large <= small * 1.001


def test_nights_that_bring_something_are_paid_in_the_warehouse_and_idle_ones_once_in_28() -> None:
    plan = cost_of(TRAFFIC, "large", OURS)
    nights = plan.idle["redshift.rpu_hours"] + plan.running["redshift.rpu_hours"]
    assert nights == pytest.approx(plan.idle["redshift.rpu_hours"] * NIGHTS)


def test_without_boards_and_leagues_nothing_of_them_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, settings = Traffic(5000), units()["sizes"]["small"]["settings"]
    with_both = replace(plain, boards=1, leagues=1)
    day = day_of(plain, settings)
    costs = [cost_of(each, "small", OURS).dollars for each in (plain, replace(plain, boards=1), with_both)]
    assert costs == sorted(set(costs))
    others = {name: path for name, path in units()["paths"].items() if not OF_BOARDS.match(name)}
    monkeypatch.setattr(cost, "units", lambda: {**units(), "paths": others})
    assert day_of(plain, settings) == day
    with pytest.raises((KeyError, IndexError)):
        day_of(with_both, settings)


def test_the_book_s_page_says_what_a_board_and_a_league_cost() -> None:
    """The figures that docs/book.md has, from paths as they were measured."""
    page = (ROOT / "docs" / "book.md").read_text()
    with_board, without = (path_at_size(f"board.period.{name}", 1e6) for name in ("week", "none"))
    writes = cost.total(with_board, "write") - cost.total(without, "write")
    reads = cost.total(with_board, "read") - cost.total(without, "read")
    closing = units()["paths"]["league.closing.30"]
    counts = closing["RanksFunction"]
    waits = counts["calls.dynamodb"] * fact("latency_ms.dynamodb") / 1000  # of 16 cohorts at the same time
    hours = 100_000 * (cost.seconds_of(counts) - waits) / 3600
    told = [
        f"{round(writes, -3):,.0f} write units and {round(reads, -3):,.0f} more read units for a million",
        f"{cost.total(closing, 'write'):.0f} write units and {cost.total(closing, 'read'):.0f} read units to close",
        f"`streakline plan` in {hours:.1f} hours",
    ]
    assert [each for each in told if each not in page] == []


def test_between_two_sizes_and_beyond_them_there_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    paths = {f"a.{n}": {"F": {"x": float(10 * n)}} for n in (1, 2, 6)}
    monkeypatch.setattr(cost, "units", lambda: {"paths": paths})
    assert [path_at_size("a", size)["F"]["x"] for size in (1, 1.5, 4, 6, 9)] == [10, 15, 40, 60, 90]


def test_the_first_limit_is_the_fullest_and_is_reached_where_it_says() -> None:
    plan = cost_of(TRAFFIC, "small", OURS)
    users = plain_data(TRAFFIC, OURS, {"small": plan})["sizes"]["small"]["first_limit"]["daily_actives"]
    settings = units()["sizes"]["small"]["settings"]
    there = replace(
        TRAFFIC,
        daily_actives=users,
        of_parts=dict.fromkeys(NAMES, users / 100),
    )
    assert max(limits(day_of(there, settings), settings)).share == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(
    ("expression", "times"),
    [
        ("rate(5 minutes)", 288),
        ("rate(1 hour)", 24),
        ("cron(30 2 * * ? *)", 1),
        ("cron(0,30 8,20 * * ? *)", 4),
    ],
)
def test_a_schedule_fires_as_often_as_it_says(expression: str, times: int) -> None:
    assert fires_a_day(expression) == times


def test_another_schedule_is_refused() -> None:
    with pytest.raises(ValueError, match="does not know the schedule"):
        fires_a_day("cron(*/5 * * * ? *)")


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"prices"', '"rest"', "KeyError"),
        ('"per": 1000000', '"per": 0', "above 0"),
        *(('"prices":', f'"prices": {text}, "rest":', "") for text in ("[]", "[1]", "7", "null", '"a"')),
        *(('"prices":', f'"prices": {{"a": {text}}}, "rest":', "") for text in ("[]", "7", "null", '"a"')),
        *(("{", f"{text}, {{", "") for text in ("[1", "7", "null")),
        ('"per": 1000000', '"per": "7"', ""),
        ('"per": 1000000', '"per": null', ""),
        ('"per": 1000000', '"per": NaN', "above 0"),
        ('"per": 1000000', '"per": 1, "free": "7"', "TypeError"),
        ('"per": 1000000', '"per": 1, "free": -1', "free must not"),
    ],
)
def test_a_price_list_that_cannot_be_used_is_refused(tmp_path: Path, old: str, new: str, why: str) -> None:
    path = tmp_path / "mine.json"
    path.write_text(PRICES.read_text().replace(old, new, 1))
    with pytest.raises(BadPriceList, match=f"--prices: .*mine.json: .*{why}"):
        read_prices(path)


def test_a_price_list_of_your_own_replaces_ours(tmp_path: Path) -> None:
    given_prices = json.loads(PRICES.read_text())
    for each in given_prices["prices"].values():
        each["dollars"] *= 2
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**given_prices, "region": "home"}))
    mine = read_prices(path)
    assert cost_of(TRAFFIC, "small", mine).dollars == pytest.approx(
        2 * cost_of(TRAFFIC, "small", OURS).dollars
    )
    assert mine.region == "home"


def test_an_amount_without_a_price_is_named_and_free_units_cost_nothing() -> None:
    prices = PriceList("r", "d", "s", {"a": Price(2.0, 10.0, "u", free=5.0)})
    assert [prices.dollars({"a": amount})["a"] for amount in (3.0, 15.0)] == [0.0, 2.0]
    with pytest.raises(BadPriceList, match=r"lacks lambda\.requests"):
        prices.dollars({"lambda.requests": 1})


def test_text_and_json_say_the_same() -> None:
    costs = {size: cost_of(TRAFFIC, size, OURS) for size in SIZES}
    text = "\n".join(lines(TRAFFIC, OURS, costs))
    data = json.loads(json.dumps(plain_data(TRAFFIC, OURS, costs)))
    for size in data["sizes"].values():
        assert f"{size['dollars']:,.2f}" in text
        assert f"{size['first_limit']['name']}, " in text
