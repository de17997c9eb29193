"""Opening positions (docs/rules.md, rule 20): a row is what another system says of a user. Each is written at
once, in one transaction if nobody else has written, and compared.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.goals import AchievementStore
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from adapters.platform.spreadsheets import cell
from adapters.platform.tables import chunks
from adapters.privacy.tombstones import ErasureCheck
from ingest.web.json_schema import USER_ID
from local.move_in.histories import ABSENT, SAME, Compared
from local.move_in.rows import RefusedRow, Row, read_rows
from rules.book.book import Books
from rules.days import stamp
from rules.engagement.account_state import Decision, Profile
from rules.engagement.achievements import AchievementSnapshot, declared_achievements
from rules.engagement.events import InputRefused
from rules.engagement.ledger import Entry, EntryKind
from rules.engagement.opening_positions import OpeningPosition, has_position, position_of, with_position
from rules.engagement.streak import shown_streak
from rules.privacy.tombstones import user_subject


@dataclass(frozen=True, slots=True)
class PositionImporter:
    """Moves users in, one at a time."""

    accounts: AccountStore
    cache: EngagementCache
    achievements: AchievementStore

    def move(self, position: OpeningPosition, now: datetime) -> bool:
        """Give a user a position; whether that has changed anything.

        Raises InputRefused for a user with another position or a history; AccountContended.
        """
        user = position.user_id
        for _ in pauses(ATTEMPTS_MAX):
            account, _applied = self.accounts.load(user, [position.as_of])
            if has_position(account, position):
                return False
            if account.pending:
                self.accounts.finish_pending(user, now)
                continue
            decision = self.accounts.decision_of(account, lambda each: with_position(each, position, now))
            try:
                self._commit(decision, position)
            except (HeadMoved, ProjectionMoved):
                continue
            self.cache.write_through([decision.profile], decision.days.values())
            return True
        raise AccountContended(user)

    def _commit(self, decision: Decision, position: OpeningPosition) -> None:
        put = (
            [self.achievements.put_action(position.user_id, self._with(position))]
            if position.achievements
            else []
        )
        if decision.entries:
            self.accounts.commit_at_once(decision, also=put)
        else:
            self.accounts.put_profile(decision.profile, also=put)

    def _with(self, position: OpeningPosition) -> AchievementSnapshot:
        """Return what readers have kept of the user, with what is brought along as if it had been shown."""
        kept = self.achievements.get(position.user_id)
        dated = {name: min(at, kept.shown.get(name, at)) for name, at in position.achievements.items()}
        return replace(kept, shown={**kept.shown, **dated})

    def has_achievements(self, position: OpeningPosition) -> bool:
        """Whether the user has all that the position brings along."""
        if not position.achievements:
            return True
        shown = self.achievements.get(position.user_id).shown
        return all(shown.get(name, "9") <= at for name, at in position.achievements.items())


READERS = 8
MOVED_ON, DIFFERS = "same, and moved on", "differs"
Figures = tuple[int, int, date | None, int, int, int]
FIELDS = ("streak", "longest", "last_date", "active_days", "balance", "freezes")
HEADER = ("line", "user_id", *(f"{name}_{side}" for name in FIELDS for side in ("told", "shown")), "outcome")


@dataclass(frozen=True, slots=True)
class PositionMoving:
    """Files of opening positions."""

    mover: PositionImporter
    books: Books
    erased: ErasureCheck
    now: Callable[[], datetime]

    def check(self, row: Row) -> OpeningPosition | RefusedRow:
        """Return a row's position, or why it is refused."""
        try:
            position = position_of(row.values, self.now().date(), USER_ID)
        except InputRefused as refused:
            return RefusedRow(row.line, refused.field, refused.reason, row.values)
        if problem := self._unknown(position):
            return RefusedRow(row.line, "achievements", problem, row.values)
        at = stamp(datetime.combine(position.as_of, time(), UTC))
        if self.erased.forbids(user_subject(position.user_id), at):
            return RefusedRow(row.line, "user_id", "was erased", row.values)
        return position

    def _unknown(self, position: OpeningPosition) -> str:
        """Return why achievements cannot be brought along; "" if they can."""
        known = declared_achievements(self.books, self.now()) if position.achievements else {}
        for name in position.achievements:
            if name not in known:
                return f"has {name}, which is not in the book in force"
            if not known[name].rule.stays:
                return f"has {name}, which the book withdraws where its conditions do not hold"
        return ""

    def send(self, some: Sequence[Row]) -> Sequence[RefusedRow | None]:
        """Move users in."""
        return [self._move(each) for each in some]

    def _move(self, row: Row) -> RefusedRow | None:
        position = self.check(row)
        if isinstance(position, RefusedRow):
            return position
        try:
            self.mover.move(position, self.now())
        except InputRefused as refused:
            return RefusedRow(row.line, refused.field, refused.reason, row.values)
        except AccountContended:
            return RefusedRow(row.line, "user_id", "kept changing: import this line again", row.values)
        return None

    def compare(self, path: Path, out: Path, rows: int) -> Compared:  # noqa: ARG002 (histories need it)
        """Hold each position against the account."""
        found = Compared(Counter())
        with (
            out.open("w", newline="", encoding="utf-8") as file,
            ThreadPoolExecutor(READERS) as pool,
        ):
            lines = csv.writer(file)
            lines.writerow(HEADER)
            for some in chunks(self._positions(path), READERS * 64):
                for (line, wanted), (values, outcome) in zip(some, pool.map(self._held, some), strict=True):
                    found.users += 1
                    found.counts[outcome] += 1
                    if outcome in (ABSENT, DIFFERS):
                        found.absent.add(line)
                    lines.writerow(map(cell, (line, wanted.user_id, *values, outcome)))
        return found

    def _positions(self, path: Path) -> Iterator[tuple[int, OpeningPosition]]:
        for row in read_rows(path):
            wanted = self.check(row) if isinstance(row, Row) else row
            if isinstance(wanted, OpeningPosition):
                yield row.line, wanted

    def _held(self, numbered: tuple[int, OpeningPosition]) -> tuple[list[Any], str]:
        wanted = numbered[1]
        profile = self.mover.accounts.profile(wanted.user_id)
        entries = self.mover.accounts.ledger.after(wanted.user_id, "0", consistent=False)[0]
        shown = self._shown(profile, wanted)
        outcome = _outcome(profile, entries, wanted)
        if outcome == SAME and shown != _said(wanted):
            outcome = DIFFERS
        if outcome in (SAME, MOVED_ON) and not self.mover.has_achievements(wanted):
            outcome = DIFFERS
        return [each for pair in zip(_said(wanted), shown, strict=True) for each in pair], outcome

    @staticmethod
    def _shown(profile: Profile, wanted: OpeningPosition) -> Figures:
        """Return what the system shows: as of the position's date, or later if the user has moved on."""
        when = max(wanted.as_of, profile.streak.last) if profile.streak else wanted.as_of
        seen = shown_streak(profile.streak, profile.cover, when)
        return (
            seen.current,
            seen.longest,
            seen.last,
            seen.active_days,
            profile.balance,
            seen.freezes_available,
        )


def _said(wanted: OpeningPosition) -> Figures:
    """Return what the file says; of active dates and longest at least what the streak has."""
    opening = wanted.opening
    return (
        wanted.streak,
        opening.longest,
        wanted.last_date,
        opening.active_days,
        wanted.balance,
        wanted.freezes,
    )


def _outcome(profile: Profile, entries: Sequence[Entry], wanted: OpeningPosition) -> str:
    if profile.cover.opening is None:
        return ABSENT
    drafts = [entry.draft for entry in entries if entry.draft.kind is not EntryKind.OPEN]
    brought = wanted.drafts()
    if profile.cover.opening != wanted.opening or Counter(brought) - Counter(drafts):
        return DIFFERS
    own = (profile.cover.opening.last, profile.cover.opening.active_days)
    now = (profile.streak.last, profile.streak.active_days) if profile.streak else own
    return SAME if len(drafts) == len(brought) and now == own else MOVED_ON
