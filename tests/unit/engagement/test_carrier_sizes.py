"""A carrier takes one write unit, whatever its entries were judged by and whatever it says of itself."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from adapters.engagement.account_items import entry_from, entry_item
from bench.counting.dynamodb_units import WRITE_UNIT_BYTES, item_bytes
from rules.book.point_rules import Cap, Period
from rules.days import stamp
from rules.engagement.carriers import split_carriers
from rules.engagement.ledger import Head, append_drafts
from rules.engagement.proof import DIGEST_BYTES, SALT_BYTES, seal_entries
from tests.support.ledger_strategies import earn

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
judgements = st.fixed_dictionaries(
    {
        "rules_version": st.none() | st.integers(1, 999),
        "cap": st.none() | st.builds(Cap, st.integers(0, 10**4), st.sampled_from(Period)),
        "is_passive": st.booleans(),
        "expires_on": st.none() | st.just("2027-06-01"),
        "measures": st.sampled_from((None, "n", "n,minutes=30500", "n,a=1,b=2")),
    }
)


@given(st.integers(1, 128), st.lists(st.tuples(st.text(min_size=1, max_size=64), judgements), min_size=1))
def test_a_carrier_takes_one_write_unit(length: int, kinds: list[tuple[str, dict[str, Any]]]) -> None:
    drafts = [
        replace(earn(65_535, number, "".join(kind.split(" ")) or "X"), **judged)
        for number in range(60)
        for kind, judged in [kinds[number % len(kinds)]]
    ]
    head = Head(stamp(NOW), 99_999_900, 10**9, b"c" * (DIGEST_BYTES + SALT_BYTES))
    entries = seal_entries(append_drafts("u" * length, head, drafts, NOW), head, b"")
    carriers, rest = split_carriers(entries)
    for carrier in carriers:
        through = "2026-03-01T00:00:00.000/300000000000000499659"
        stored = entry_item(replace(carrier, applied_through=through))
        assert item_bytes(stored) <= WRITE_UNIT_BYTES
        assert entry_from(stored).carried == carrier.carried
    assert len(rest) + len(carriers) == len(entries)
