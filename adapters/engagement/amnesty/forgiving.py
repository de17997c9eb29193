"""Applies amnesties to one account after the other."""

from dataclasses import dataclass, replace
from datetime import date, datetime

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from rules.days import today
from rules.engagement.account import decide
from rules.engagement.account_state import Amnesties, Decision, Profile
from rules.engagement.ledger import FreezeNote
from rules.engagement.streak import lapse_date, shown_streak


@dataclass(frozen=True, slots=True)
class Forgiven:
    """What became of an account. before, after: the streak that shows. freezes: given back; below 0: used.

    is_known: False for somebody without an account.
    """

    user_id: str
    is_changed: bool
    before: int = 0
    after: int = 0
    freezes: int = 0
    is_known: bool = True


@dataclass(frozen=True, slots=True)
class Forgiver:
    """Applies amnesties to accounts, and takes back those that were revoked."""

    accounts: AccountStore
    cache: EngagementCache

    def forgive(self, user_id: str, amnesties: Amnesties, now: datetime, *, is_dry: bool = False) -> Forgiven:
        """Give an account what the named ones of these amnesties come to; is_dry: only say what that is.

        Where nothing comes of it, nothing is written. Raises AccountContended.
        """
        for _ in pauses(ATTEMPTS_MAX):
            account = self.accounts.load(user_id)[0]
            decision = self.accounts.decide(account, lambda each: decide(each, (), now), amnesties)
            told = _told(decision, now)
            if is_dry or not told.is_changed:
                return told
            try:
                self.accounts.commit(decision)
            except (HeadMoved, ProjectionMoved):
                continue
            self.cache.write_through([decision.profile], decision.days.values())
            return told
        raise AccountContended(user_id)


def _told(decision: Decision, now: datetime) -> Forgiven:
    before, after = decision.before.profile, decision.profile
    notes = [entry.draft.freeze for entry in decision.entries]
    freezes = notes.count(FreezeNote.REFUNDED) - notes.count(FreezeNote.SPENT)
    shown = _shown(before, now), _shown(after, now)
    return Forgiven(after.user_id, _matters(decision, now), *shown, freezes, is_known=before.version > 0)


def _matters(decision: Decision, now: datetime) -> bool:
    """Whether an account is another one after a decision: its streak, now or when it lapses, or its ledger.

    What is revoked is taken off an account in any case.
    """
    before, after = decision.before.profile, decision.profile
    kept = {number for number, _ in after.amnesties}
    if decision.entries or decision.days or any(number not in kept for number, _ in before.amnesties):
        return True
    return _outcome(before, now) != _outcome(after, now)


def _outcome(profile: Profile, now: datetime) -> tuple[object, ...]:
    if profile.streak is None:
        return ()
    shown = replace(shown_streak(profile.streak, profile.cover, _as_of(profile, now)), spent=())
    return shown, profile.streak, lapse_date(profile.streak, profile.cover)


def _shown(profile: Profile, now: datetime) -> int:
    return shown_streak(profile.streak, profile.cover, _as_of(profile, now)).current


def _as_of(profile: Profile, now: datetime) -> date:
    local = today(now, profile.zone)
    return max(local, profile.streak.last) if profile.streak else local
