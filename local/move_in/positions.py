"""Imports opening positions: what another system says of its users, a row for each (rule 20).

A position is written to the user's account, and compared with what the account shows then.
"""

import csv
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from pathlib import Path
from typing import Any, NamedTuple

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.achievements import AchievementStore
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from adapters.platform.spreadsheets import cell
from adapters.platform.tables import BEFORE_ALL, chunks
from adapters.privacy.tombstones import ErasureCheck
from local.move_in.histories import ABSENT, SAME, ComparisonResult
from local.row_files import FileRow, RefusedRow, read_rows
from rules.book.book import Books
from rules.days import stamp
from rules.engagement.account_state import Decision, Profile
from rules.engagement.achievements import AchievementSnapshot
from rules.engagement.events import InputRefused
from rules.engagement.goals import declared_achievements
from rules.engagement.ledger import Entry, EntryKind
from rules.engagement.opening_positions import OpeningPosition, has_position, position_of, with_position
from rules.engagement.streak import shown_streak
from rules.privacy.tombstones import user_subject

READERS = 8
# Outcomes of a comparison, besides ABSENT and SAME. A user has moved on by events of this system.
SAME_AND_MOVED_ON, DIFFERS = "same, and moved on", "differs"


class PositionFigures(NamedTuple):
    """The figures of a position, as a file or an account has them."""

    streak: int
    longest: int
    last_date: date | None
    active_days: int
    balance: int
    freezes: int
    earned: int


# told: by the file. shown: by the account
FIGURE_COLUMNS = [f"{name}_{side}" for name in PositionFigures._fields for side in ("told", "shown")]
HEADER = ("line", "user_id", *FIGURE_COLUMNS, "outcome")
# Kinds of entries that are no points and no freezes, or points of this system's own.
NOT_BROUGHT = (EntryKind.OPEN, EntryKind.SETTING, EntryKind.BONUS)


@dataclass(frozen=True, slots=True)
class PositionImporter:
    """Gives users their opening positions, one at a time."""

    accounts: AccountStore
    cache: EngagementCache
    achievements: AchievementStore
    books: Callable[[], Books]  # of the service

    def move(self, position: OpeningPosition, now: datetime) -> bool:
        """Give a user a position, in one transaction; returns whether that has changed anything.

        Raises InputRefused for a user with another position or a history; AccountContended if others write to
        the account at each attempt.
        """
        user, paying = position.user_id, self.books().at(now).book.paying
        for _ in pauses(ATTEMPTS_MAX):
            account = self.accounts.load(user, [position.as_of]).account
            if has_position(account, position):
                return False
            if account.pending:
                self.accounts.finish_pending(user, now)
                continue
            decision = self.accounts.decision_of(
                account, lambda state: with_position(state, position, now, paying)
            )
            try:
                self._commit(decision, position)
            except (HeadMoved, ProjectionMoved):
                continue
            self.cache.write_through([decision.profile], decision.days.values())
            return True
        raise AccountContended(user)

    def has_achievements(self, position: OpeningPosition) -> bool:
        """Whether the user has all that the position brings along."""
        if not position.achievements:
            return True
        shown_at = self.achievements.get(position.user_id).shown
        return all(
            name in shown_at and shown_at[name] <= instant for name, instant in position.achievements.items()
        )

    def _commit(self, decision: Decision, position: OpeningPosition) -> None:
        """Write the position in one transaction. Raises HeadMoved, ProjectionMoved."""
        actions = []
        if position.achievements:
            snapshot = self._with_achievements(position)
            actions.append(self.achievements.put_action(position.user_id, snapshot))
        self.accounts.commit_at_once(decision, also=actions)

    def _with_achievements(self, position: OpeningPosition) -> AchievementSnapshot:
        """Return the user's stored achievements with those of the position, as if they had been shown."""
        stored = self.achievements.get(position.user_id)
        imported = {
            name: min(instant, stored.shown.get(name, instant))
            for name, instant in position.achievements.items()
        }
        return replace(stored, shown={**stored.shown, **imported})


@dataclass(frozen=True, slots=True)
class ComparedPosition:
    """A position beside the user's account."""

    in_file: PositionFigures
    in_account: PositionFigures
    outcome: str  # ABSENT, SAME, SAME_AND_MOVED_ON or DIFFERS

    def values(self) -> list[Any]:
        """Return the values in the order of FIGURE_COLUMNS."""
        return [figure for pair in zip(self.in_file, self.in_account, strict=True) for figure in pair]


@dataclass(frozen=True, slots=True)
class PositionFiles:
    """Checks, imports and compares files of opening positions."""

    importer: PositionImporter
    books: Books
    erased: ErasureCheck
    now: Callable[[], datetime]

    def check(self, row: FileRow) -> OpeningPosition | RefusedRow:
        """Return a row's position, or why it is refused."""
        try:
            position = position_of(row.values, self.now().date())
        except InputRefused as refused:
            return RefusedRow(row.line, refused.field, refused.reason, row.values)
        if problem := self._achievement_problem(position):
            return RefusedRow(row.line, "achievements", problem, row.values)
        midnight = stamp(datetime.combine(position.as_of, time(), UTC))
        if self.erased.forbids(user_subject(position.user_id), midnight):
            return RefusedRow(row.line, "user_id", "was erased", row.values)
        return position

    def send(self, rows: Sequence[FileRow]) -> list[RefusedRow | None]:
        """Import rows; returns for each why it is refused, None if it is taken."""
        return [self._import(row) for row in rows]

    def compare(self, path: Path, out: Path) -> ComparisonResult:
        """Compare each position with the user's account, and write a line for each."""
        result = ComparisonResult()
        with (
            out.open("w", newline="", encoding="utf-8") as file,
            ThreadPoolExecutor(READERS) as pool,
        ):
            lines = csv.writer(file, quoting=csv.QUOTE_ALL)
            lines.writerow(HEADER)
            for chunk in chunks(self._positions(path), READERS * 64):
                compared_positions = pool.map(self._compare_account, (position for _, position in chunk))
                for (line, position), compared in zip(chunk, compared_positions, strict=True):
                    result.users += 1
                    result.counts[compared.outcome] += 1
                    if compared.outcome in (ABSENT, DIFFERS):
                        result.absent.add(line)
                    values = (line, position.user_id, *compared.values(), compared.outcome)
                    lines.writerow(map(cell, values))
        return result

    def _achievement_problem(self, position: OpeningPosition) -> str:
        """Return why the position's achievements cannot be imported; "" if they can."""
        declared = declared_achievements(self.books, self.now()) if position.achievements else {}
        for name in position.achievements:
            if name not in declared:
                return f"has {name}, which is not in the book in force"
            if not (declared[name].rule.stays or declared[name].rule.points):
                return f"has {name}, which the book withdraws where its conditions do not hold"
        return ""

    def _import(self, row: FileRow) -> RefusedRow | None:
        """Import a row; returns why it is refused, None if it is taken."""
        position = self.check(row)
        if isinstance(position, RefusedRow):
            return position
        try:
            self.importer.move(position, self.now())
        except InputRefused as refused:
            return RefusedRow(row.line, refused.field, refused.reason, row.values)
        except AccountContended:
            return RefusedRow(row.line, "user_id", "kept changing: import this line again", row.values)
        return None

    def _positions(self, path: Path) -> Iterator[tuple[int, OpeningPosition]]:
        """Yield a file's positions that can be imported, each with the number of its line."""
        for row in read_rows(path):
            position = self.check(row) if isinstance(row, FileRow) else row
            if isinstance(position, OpeningPosition):
                yield row.line, position

    def _compare_account(self, position: OpeningPosition) -> ComparedPosition:
        """Compare a position with the user's account."""
        profile = self.importer.accounts.profile(position.user_id)
        entries, _ = self.importer.accounts.ledger.after(position.user_id, BEFORE_ALL, is_strong=False)
        in_file, in_account = _figures_in_file(position), _figures_in_account(profile, position)
        outcome = _outcome(profile, entries, position)
        if outcome == SAME and in_account != in_file:
            outcome = DIFFERS
        if outcome in (SAME, SAME_AND_MOVED_ON) and not self.importer.has_achievements(position):
            outcome = DIFFERS
        return ComparedPosition(in_file, in_account, outcome)


def _figures_in_account(profile: Profile, position: OpeningPosition) -> PositionFigures:
    """Return what the system shows: as of the position's date, or later if the user has moved on."""
    as_of = max(position.as_of, profile.streak.last) if profile.streak else position.as_of
    streak = shown_streak(profile.streak, profile.cover, as_of)
    return PositionFigures(
        streak.current,
        streak.longest,
        streak.last,
        streak.active_days,
        profile.balance,
        streak.freezes_available,
        profile.total_points,
    )


def _figures_in_file(position: OpeningPosition) -> PositionFigures:
    """Return what the file says; active days and the longest streak are at least those of the streak."""
    opening = position.opening
    return PositionFigures(
        position.streak,
        opening.longest,
        position.last_date,
        opening.active_days,
        position.balance,
        position.freezes,
        max(position.earned, position.balance),
    )


def _outcome(profile: Profile, entries: Sequence[Entry], position: OpeningPosition) -> str:
    """Return the outcome by what the account has stored. entries: of the user's ledger."""
    opening = profile.cover.opening
    if opening is None:
        return ABSENT
    drafts = [entry.draft for entry in entries if entry.draft.kind not in NOT_BROUGHT]
    position_drafts = position.drafts()
    if opening != position.opening or Counter(position_drafts) - Counter(drafts):
        return DIFFERS
    streak = profile.streak or opening
    has_new_days = (streak.last, streak.active_days) != (opening.last, opening.active_days)
    return SAME_AND_MOVED_ON if has_new_days or len(drafts) != len(position_drafts) else SAME
