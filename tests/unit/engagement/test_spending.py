"""What is possible with points and freezes is one rule, for the doors and for what-if."""

import ast
from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.book.book import FreezeRules
from rules.engagement.ledger import Draft, Entry, EntryKind, FreezeNote, InsufficientBalance, check_covered
from rules.engagement.spending import (
    FreezesHeldMax,
    NotReversible,
    check_freeze,
    check_reversible,
    reversal_of,
    spendable,
)
from rules.engagement.streak import Cover, fold
from tests.support.template import ROOT

MONDAY = date(2026, 3, 2)
POINTS = st.integers(0, 50)


def entry(
    kind: EntryKind = EntryKind.REDEEM, points: int = -5, reversed_by: str | None = None, **more: str
) -> Entry:
    freeze = FreezeNote.GRANTED if more.get("freeze_date") else None
    draft = Draft(kind, points, reward_id="mug", freeze=freeze, **more)  # type: ignore[arg-type]  # texts alone
    return Entry("u", "2026-03-02T12:00:00.000000Z", 2, 0, draft, reversed_by=reversed_by)


@given(POINTS, st.lists(POINTS, max_size=4), st.lists(POINTS, max_size=6))
def test_redemptions_leave_what_holds_reserve_so_that_each_can_be_captured(
    balance: int, holds: list[int], redeemed: list[int]
) -> None:
    held: list[int] = []
    for points in holds:
        try:
            check_covered(points, spendable(balance, sum(held), is_capture=False))
        except InsufficientBalance:
            continue
        held.append(points)
    for points in redeemed:
        try:
            check_covered(points, spendable(balance, sum(held), is_capture=False))
        except InsufficientBalance as refused:
            assert (refused.balance, refused.wanted) == (balance - sum(held), points)
            continue
        balance -= points
    while held:
        check_covered(held[0], spendable(balance, sum(held), is_capture=True))
        balance -= held.pop(0)
    assert balance >= 0


def test_a_capture_comes_before_what_other_holds_reserve() -> None:
    # 30 points are held twice, and a clawback has left 40.
    check_covered(30, spendable(40, 60, is_capture=True))
    with pytest.raises(InsufficientBalance):
        check_covered(1, spendable(40, 60, is_capture=False))


def test_what_costs_nothing_is_possible_in_a_debt() -> None:
    check_covered(0, -10)
    with pytest.raises(InsufficientBalance, match="balance -10 does not cover 1 points"):
        check_covered(1, -10)


@pytest.mark.parametrize(("most", "is_possible"), [(1, False), (2, False), (3, True)])
def test_a_freeze_is_possible_while_fewer_are_held_than_may_be(most: int, is_possible: bool) -> None:
    cover = Cover(((MONDAY, 2),))
    streak = fold([MONDAY], cover)
    if is_possible:
        check_freeze(streak, cover, MONDAY, FreezeRules(most, 0, 100))
        return
    with pytest.raises(FreezesHeldMax, match=f"2 freezes are held, and {most} may be"):
        check_freeze(streak, cover, MONDAY, FreezeRules(most, 0, 100))


def test_a_freeze_that_a_missed_date_will_spend_is_held_no_more() -> None:
    cover = Cover(((MONDAY, 1),))
    check_freeze(fold([MONDAY], cover), cover, MONDAY + timedelta(days=2), FreezeRules(1, 0, 100))


@pytest.mark.parametrize(
    ("what", "is_reversed", "reason"),
    [
        (entry(EntryKind.EARN, 5), False, "an entry of kind EARN is not a redemption"),
        (entry(reversed_by="2026-03-03T12:00:00.000000Z"), True, "the redemption was reversed before"),
    ],
)
def test_only_a_redemption_is_reversed_and_once(what: Entry, is_reversed: bool, reason: str) -> None:
    with pytest.raises(NotReversible, match=reason) as refused:
        check_reversible(what)
    assert refused.value.is_reversed is is_reversed
    check_reversible(entry())


def test_a_reversal_gives_the_points_back_and_revokes_the_freeze() -> None:
    plain = reversal_of(entry(), None, Cover(), MONDAY)
    assert (plain.kind, plain.points, plain.reverses, plain.freeze) == (
        EntryKind.REVERSE,
        5,
        "2026-03-02T12:00:00.000000Z",
        None,
    )
    freeze = reversal_of(entry(freeze_date="2026-03-02"), None, Cover(((MONDAY, 1),)), MONDAY)
    assert (freeze.freeze, freeze.freeze_date) == (FreezeNote.REVOKED, "2026-03-02")


@pytest.mark.parametrize(
    "module",
    [
        "ingest/engagement/points/commands.py",
        "ingest/engagement/points/holds.py",
        "analytics/what_if/user_replay.py",
    ],
)
def test_nobody_else_decides_what_is_possible(module: str) -> None:
    """They neither compare with what the book allows, nor raise that a balance is too small."""
    tree = ast.parse((ROOT / module).read_text())
    assert "spendable" in {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert "held_max" not in {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    raised = [ast.unparse(node.exc) for node in ast.walk(tree) if isinstance(node, ast.Raise) and node.exc]
    assert not [each for each in raised if each.startswith("InsufficientBalance")]
