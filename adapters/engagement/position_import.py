"""Writes opening positions (docs/rules.md, rule 20), each in one transaction: if nobody else has written."""

from dataclasses import dataclass, replace
from datetime import datetime

from adapters.engagement.account_store import ATTEMPTS_MAX, AccountContended, AccountStore, ProjectionMoved
from adapters.engagement.engagement_cache import EngagementCache
from adapters.engagement.goals import AchievementStore
from adapters.engagement.ledger_store import HeadMoved
from adapters.platform.aws import pauses
from rules.engagement.account_state import Decision
from rules.engagement.achievements import AchievementSnapshot
from rules.engagement.opening_positions import OpeningPosition, has_position, with_position


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
                self.accounts.settle(user, now)
                continue
            decision = self.accounts.decide(account, lambda each: with_position(each, position, now))
            try:
                self._commit(decision, position)
            except (HeadMoved, ProjectionMoved):
                continue
            self.cache.write_through([decision.profile], decision.days.values())
            return True
        raise AccountContended(user)

    def _commit(self, decision: Decision, position: OpeningPosition) -> None:
        put = (
            [self.achievements.put_of(position.user_id, self._with(position))]
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
