"""A stock in slices is exact, whatever is taken, comes back and is raised, in any order (rule 13)."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from rules.book.rewards import GROUPS, SLICES, SPARES, group_of, open_slices, pieces_left, slice_size
from tests.support.examples import examples

STOCKS = st.integers(0, 300) | st.integers(0, 10**9)


@given(STOCKS)
def test_shares_are_the_stock_and_differ_by_one_at_most(stock: int) -> None:
    shares = [slice_size(stock, number) for number in range(SLICES)]
    assert sum(shares) == stock
    assert max(shares) - min(shares) <= 1
    assert open_slices(stock, {}) == tuple(range(min(SLICES, stock)))
    assert pieces_left(stock, {}, 0) == stock


@given(STOCKS, st.integers(0, 1000), st.integers(0, SLICES - 1))
def test_no_share_gets_smaller_when_the_stock_is_raised(stock: int, more: int, number: int) -> None:
    assert slice_size(stock + more, number) >= slice_size(stock, number)


def test_slices_are_spread_over_partitions() -> None:
    for stock in (GROUPS, 20, SLICES):
        groups = [group_of(number) for number in open_slices(stock, {})]
        assert {groups.count(group) for group in range(GROUPS)} == {stock // GROUPS}


@dataclass
class Table:
    """What the conditions of the table let through."""

    taken: dict[int, int] = field(default_factory=dict)
    spares: int = 0

    def take(self, stock: int, number: int) -> bool:
        if number == SPARES:
            self.spares -= (there := self.spares > 0)
            return there
        there = self.taken.get(number, 0) < slice_size(stock, number)
        self.taken[number] = self.taken.get(number, 0) + there
        return there


class Sellers(RuleBasedStateMachine):
    """Sellers who remember what was open, two of them, and one of them may know an older version."""

    @initialize(stock=st.integers(0, 40) | st.integers(0, 2 * SLICES))
    def begin(self, stock: int) -> None:
        self.table, self.stock, self.out = Table(), stock, 0
        self.known: dict[tuple[int, int], tuple[int, ...]] = {}

    @rule(seller=st.integers(0, 1), chance=st.randoms(use_true_random=False), times=st.integers(1, 30))
    def sell(self, seller: int, chance: st.DataObject, times: int) -> None:
        for _ in range(times):
            left = self.stock - self.out
            assert self._sold(seller, chance) == (left > 0), (
                "refused while something is left, or one too many"
            )

    def _sold(self, seller: int, chance: st.DataObject) -> bool:
        key, is_again = (seller, self.stock), False
        for _ in range(SLICES + 2):
            open_ = self.known.get(key, open_slices(self.stock, {}))
            if open_ and is_again:
                open_ = self.known[key] = open_slices(self.stock, self.table.taken)
            if not open_ and not self.table.spares:
                return False
            place = chance.choice(open_) if open_ else SPARES  # type: ignore[attr-defined]
            if self.table.take(self.stock, place):
                self.out += 1
                return True
            is_again = True
        raise AssertionError("it does not come to an end")

    @rule(times=st.integers(1, 5))
    def come_back(self, times: int) -> None:
        back = min(times, self.out)
        self.out -= back
        self.table.spares += back

    @rule(more=st.integers(1, 20))
    def raise_stock(self, more: int) -> None:
        self.stock += more

    @invariant()
    def nothing_is_lost_or_made(self) -> None:
        assert 0 <= self.out <= self.stock
        assert pieces_left(self.stock, self.table.taken, self.table.spares) == self.stock - self.out


TestSellers = Sellers.TestCase
TestSellers.settings = settings(max_examples=examples(50), stateful_step_count=20)
