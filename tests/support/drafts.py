"""Entries of a journal, drawn at random, and made at a time that the lake should or may not have by now."""

from collections.abc import Sequence
from datetime import UTC, date, datetime

from hypothesis import settings
from hypothesis import strategies as st

from rules.engagement.ledger import Draft, Entry, EntryKind, append_drafts
from rules.engagement.reconciliation import LAKE_LAG
from tests.support.examples import examples

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)
OLD, YOUNG = NOW - 2 * LAKE_LAG, NOW - LAKE_LAG / 2
SMALL = settings(max_examples=examples(80))
earned = st.builds(
    lambda number, day, points: Draft(
        EntryKind.EARN, points, f"event-{number}", "CHECK_IN", date(2026, 3, day).isoformat()
    ),
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(0, 9),
)
bonuses = st.sampled_from((7, -7)).map(
    lambda points: Draft(EntryKind.BONUS, points, reward_id="first", activity_date="2026-03-04")
)
drafts = st.lists(earned | bonuses | st.just(Draft(EntryKind.ADJUST, 3)), min_size=1, max_size=8)


def journal(made: Sequence[Draft], at: datetime = OLD) -> list[Entry]:
    """The entries that drafts become."""
    return append_drafts("ann", None, made, at)
