"""Which late events count, because their device is known to have been offline (rule 16).

A *stretch* is the time between two contacts of a device: a receipt, and the batch that brought it. What
happened in between and is older than 72 hours counts, as far as the book of rules allows, and until 72 hours
after the first contact. So whoever was in touch all the time gains nothing by a receipt.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from rules.book.book import Offline
from rules.days import stamp, unstamp
from rules.engagement.clocks.receipts import Receipt, refusal
from rules.engagement.events import FUTURE_MAX, LATE_MAX, InputRefused

# A device that has just been in touch has 72 hours to send what it holds, as everybody has (rule 3).
OPEN_FOR = LATE_MAX
# Older receipts are refused, so what was used need not be known for longer than a year.
RECEIPT_AGE_MAX = timedelta(days=60)
YEAR = timedelta(days=365)
# So many stretches of a year are kept. Nobody comes back from the sea more often.
STRETCHES_MAX = 60
DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Some time that a device of a user was offline.

    owner: the hash of user and device. receipt_at: of the receipt that began it. since: the same, or later:
    when the user last was in touch by any device. until: when the receipt was used first. open_until: until
    when events of it may come.
    """

    owner: str
    receipt_at: datetime
    since: datetime
    until: datetime
    open_until: datetime


def text_of(stretch: Stretch) -> str:
    """Write a stretch for its table."""
    instants = (stretch.receipt_at, stretch.since, stretch.until, stretch.open_until)
    return " ".join((stretch.owner, *map(stamp, instants)))


def of_text(text: str) -> Stretch:
    """Read what text_of wrote."""
    owner, *instants = text.split()
    return Stretch(owner, *map(unstamp, instants))


def known_stretch(
    receipt: Receipt,
    used: Sequence[Stretch],
    now: datetime,
    is_unanswered: Callable[[Stretch], bool] = lambda _: False,
) -> Stretch | None:
    """Return the stretch that a receipt belongs to, None if it begins one.

    used: the user's stretches. is_unanswered: whether the device does not know what became of the batch that
    ended a stretch, since it sends the same events again. Then it has no newer receipt: the answer was lost.
    Raises InputRefused for a receipt that was used, is out of order or too old, and for one too many.
    """
    if receipt.issued_at < now - RECEIPT_AGE_MAX:
        raise refusal(f"has expired: it is more than {RECEIPT_AGE_MAX.days} days old")
    own = [each for each in used if each.owner == receipt.owner]
    newest = max(own, key=lambda each: (each.receipt_at, each.until), default=None)
    if newest and receipt.issued_at < newest.receipt_at:
        at = stamp(newest.receipt_at)
        raise refusal(f"is out of order: a receipt of {at} of this device has been used")
    if newest and now <= newest.open_until:
        return newest
    if newest and receipt.issued_at == newest.receipt_at and not is_unanswered(newest):
        at = stamp(newest.until)
        raise refusal(f"was used before, at {at}: that stretch is over")
    if len(recent(used, now)) >= STRETCHES_MAX:
        raise refusal(f"is one too many: {STRETCHES_MAX} were used within a year")
    return None


def new_stretch(
    receipt: Receipt, used: Sequence[Stretch], contacts: Iterable[datetime], now: datetime
) -> Stretch:
    """Return the stretch that a receipt begins.

    contacts: when the user sent something after the receipt, by any device. Whoever was in touch had 72 hours
    from then on to send all that was before. A receipt that was used, and whose answer was lost, stands for
    the one that this answer had.
    """
    own = (each.until for each in used if (each.owner, each.receipt_at) == (receipt.owner, receipt.issued_at))
    every = [*contacts, *(each.until for each in used)]
    since = max([receipt.issued_at, *own, *(each for each in every if each <= now - OPEN_FOR)])
    first = min([now, *(each for each in every if each > since)])
    return Stretch(receipt.owner, receipt.issued_at, since, now, first + OPEN_FOR)


def recent(used: Iterable[Stretch], now: datetime) -> list[Stretch]:
    """Return the stretches that still matter: those of a year."""
    return [each for each in used if each.until > now - YEAR]


@dataclass(frozen=True, slots=True)
class Proof:
    """What a batch proves of when its events happened.

    stretch: that of its receipt. used: all stretches of the user. refused: why the receipt proves nothing.
    """

    stretch: Stretch | None = None
    used: tuple[Stretch, ...] = ()
    refused: InputRefused | None = None

    def check(self, occurred: datetime, offline: Offline) -> str:
        """Return since when the device was offline (a stamp), for an event that is more than 72 hours old.

        offline: what the book in force at the event says. Raises InputRefused for one that is not proven.
        """
        if self.refused or self.stretch is None:
            raise self.refused or refusal("is missing")
        since, until = self.stretch.since, self.stretch.until
        if occurred < since - FUTURE_MAX:
            raise _late(
                f"is more than 72 hours ago, and before {stamp(since)}, the last contact that is known"
            )
        if until - occurred > offline.days_max * DAY:
            raise _late(f"is more than {offline.days_max} days ago, which no receipt proves")
        if offline_in_a_year(self.stretch, self.used, occurred, offline) > offline.days_a_year * DAY:
            raise _late(f"makes more than {offline.days_a_year} days offline within a year")
        return stamp(since)


def offline_in_a_year(
    stretch: Stretch, used: Iterable[Stretch], occurred: datetime, offline: Offline
) -> timedelta:
    """Return for how long a user was offline in a year, this stretch's time since an event included.

    Of another stretch no more is counted than could be proven.
    """
    others = [each for each in recent(used, stretch.until) if each != stretch]
    spans = [(max(each.since, each.until - offline.days_max * DAY), each.until) for each in others]
    return _length([*spans, (occurred, stretch.until)])


NO_PROOF = Proof()


def _late(reason: str) -> InputRefused:
    return InputRefused("backfill_forbidden", "occurred_at", reason)


def _length(spans: Iterable[tuple[datetime, datetime]]) -> timedelta:
    """Return how long some spans are together. What two of them share is counted once."""
    total, end = timedelta(), None
    for first, last in sorted(spans):
        begin = first if end is None else max(first, end)
        total += max(last - begin, timedelta())
        end = last if end is None else max(end, last)
    return total
