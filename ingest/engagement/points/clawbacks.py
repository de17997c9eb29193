"""Reverse an event and what it earned: a refunded purchase, detected fraud (docs/rules.md, rule 12)."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime

from adapters.book_store import BookStore
from ingest.engagement.points.commands import Command, CommandResult, Commands
from ingest.web.caller import ApiError
from ingest.web.json_schema import KEY, closed_object, text
from rules.days import AT_MIDNIGHT, DAY, is_stamp, stamp, start_of
from rules.engagement.account_state import Account, Day
from rules.engagement.earnings import week_of
from rules.engagement.events import instant_of, stamp_of
from rules.engagement.ledger import Draft, Entry, EntryKind
from rules.engagement.points import clawback, reversed_events

# An entry is later than its event, and an event counts for a date at most two away from its instant (rule 8).
APART_MAX = 2 * DAY
CLAWBACK = closed_object(
    {
        "event_id": text(minLength=28, maxLength=128),
        "reason": text("why; the user sees it in the ledger", pattern=r"^(?=.*\S)[^\u0000-\u001f]{1,200}$"),
        "idempotency_key": KEY,
    }
)


@dataclass(frozen=True, slots=True)
class Clawbacks:
    """Commands that reverse events, and what these earned."""

    commands: Commands
    books: BookStore  # say what other events earn when the reversed one no longer uses their cap

    def claw_back(self, user_id: str, event_id: str, reason: str, key: str, now: datetime) -> CommandResult:
        """Reverse an event; returns its CLAWBACK.

        Raises 404 for an event without an entry, 409 already_reversed, or 409 conflict for a key used with
        another body. It reads all entries since the first week that the event can count in.
        """
        if not is_stamp(stamp_of(event_id)):
            raise ApiError(404, "not_found", "there is no such event")
        books = self.books.look()

        def command(account: Account) -> Command:
            entries = self._entries(user_id, event_id)
            earn = _earn_entry(entries, event_id)
            drafts = clawback(earn.draft, earn.created_at, [entry.draft for entry in entries], books, reason)
            *earlier_drafts, draft = drafts
            days = self._days(user_id, drafts)
            return Command(draft, entries_before=tuple(earlier_drafts), days=days)

        result = self.commands.once(user_id, f"clawback:{key}", f"{event_id} {reason}", now, command)
        # Less of an expired lot may be gone now. So what expired is settled at once, and no reader has to.
        self.commands.settler.settle(user_id, now)
        return result

    def _entries(self, user_id: str, event_id: str) -> Sequence[Entry]:
        """Return the entries of the weeks that an event can count in, and all later ones."""
        first_date = (instant_of(event_id) - APART_MAX).date()
        monday, *_ = week_of(first_date)
        since = start_of(monday - APART_MAX, "UTC", AT_MIDNIGHT)
        entries, _ = self.commands.accounts.ledger.after(user_id, stamp(since))
        return entries

    def _days(self, user_id: str, drafts: Sequence[Draft]) -> dict[date, Day | None]:
        """Return the days that the entries change, as they are stored; None for one that is not."""
        dates = {date.fromisoformat(draft.activity_date) for draft in drafts if draft.activity_date}
        stored = self.commands.accounts.days((user_id, day) for day in dates)
        return {day: stored.get((user_id, day)) for day in dates}


def _earn_entry(entries: Sequence[Entry], event_id: str) -> Entry:
    """Return an event's EARN; raises 404, 409 already_reversed.

    The CLAWBACK entries say which events were reversed. The mark reversed_by on the EARN may be missing: a
    late writer may have put the EARN once more.
    """
    if event_id in reversed_events(entry.draft for entry in entries):
        raise ApiError(409, "already_reversed", "the event was reversed before")
    for entry in entries:
        if entry.draft.kind is EntryKind.EARN and entry.draft.event_id == event_id:
            return entry
    raise ApiError(404, "not_found", "the ledger has no entry of such an event (yet)")
