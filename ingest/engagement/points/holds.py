"""Holds (docs/rules.md, rule 11): reserve points of a user, then capture or release them.

Open holds are in the profile, and in the ledger as settings. How a hold ended is stored as a claim, too, so a
late attempt learns it. The routes are in points_api.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from adapters.engagement.claims import IdempotencyClaim, claim_request
from adapters.engagement.expiry import clock_of
from ingest.engagement.points.balance import POINTS_MAX
from ingest.engagement.points.commands import COMMAND, Command, CommandResult, Commands, check_review
from ingest.web.caller import ApiError, invalid_field
from ingest.web.json_schema import KEY, SHORT, closed_object, text, whole
from rules.days import MICROSECOND, unstamp
from rules.engagement.account_state import Account, Profile
from rules.engagement.ledger import Draft, EntryKind, check_covered
from rules.engagement.lots import (
    HOLD_DEFAULT,
    HOLD_MAX,
    OPEN_MAX,
    Hold,
    HoldRequest,
    held_points,
    holds_without,
    new_hold,
)
from rules.engagement.spending import spendable

HELD, CAPTURED, RELEASED, LAPSED = "held", "captured", "released", "lapsed"  # the statuses of a hold
HOLD = closed_object(
    {
        "points": whole("", 1, POINTS_MAX),
        "reward_id": text(pattern=SHORT),
        "idempotency_key": KEY,
        "seconds?": whole(
            f"for how long; {int(HOLD_DEFAULT.total_seconds())} if it is left out",
            1,
            int(HOLD_MAX.total_seconds()),
        ),
    }
)
CAPTURE = closed_object({"points?": whole("how many of the held points are spent; all if it is left out", 1)})


@dataclass(frozen=True, slots=True)
class HoldResult:
    """A hold, and its status."""

    hold: Hold
    status: str = HELD
    duplicate: bool = False  # the key was used before


@dataclass(frozen=True, slots=True)
class Holds:
    """Commands about holds.

    The claim of an ended hold has the hold as its body. Its target is `released`, `lapsed`, or the place of
    the entry that captured the hold.
    """

    commands: Commands

    def hold(self, user_id: str, request: HoldRequest, now: datetime) -> HoldResult:
        """Reserve points until a deadline.

        Raises 409 insufficient_balance, holds_max, under_review, or conflict for a key used with another
        body.
        """
        wanted = new_hold(user_id, request, now)
        results: list[HoldResult] = []  # one of each attempt: the last attempt's is the answer

        def add_hold(profile: Profile) -> tuple[Profile, Sequence[dict[str, Any]]]:
            # Later than the newest entry, whatever this process's clock says. So no two holds of an account
            # begin at once, and a redemption's `held_at` tells which of them it captures.
            at = max(now, clock_of(profile, now) + MICROSECOND) if profile.head else now
            if earlier := self._earlier_result(user_id, profile, wanted, at):
                results.append(earlier)
                return profile, ()
            check_review(profile)
            reserved = held_points(profile.holds, at)
            check_covered(request.points, spendable(profile.balance, reserved, is_capture=False))
            results.append(HoldResult(new_hold(user_id, request, at)))
            return replace(profile, holds=(*self._with_room(user_id, profile, at), results[-1].hold)), ()

        self.commands.change(user_id, now, add_hold)
        return results[-1]

    def _with_room(self, user_id: str, profile: Profile, now: datetime) -> tuple[Hold, ...]:
        """Return a profile's holds, less a lapsed one if there is no room for another; raises 409 holds_max.

        Before a lapsed hold is dropped, its claim is put, so that its end can be known.
        """
        if len(profile.holds) < OPEN_MAX:
            return profile.holds
        lapsed = next((hold for hold in profile.holds if not hold.is_open(now)), None)
        if lapsed is None:
            raise ApiError(409, "holds_max", f"{OPEN_MAX} holds are open already")
        self.commands.claims.claim([self._end_claim(user_id, lapsed, LAPSED)], now)
        return holds_without(profile.holds, lapsed.hold_id)

    def _earlier_result(
        self, user_id: str, profile: Profile, wanted: Hold, now: datetime
    ) -> HoldResult | None:
        """Return the result of an earlier attempt with the key, if there was one; raises 409 conflict."""
        for hold in profile.holds:
            if hold.hold_id == wanted.hold_id:
                _check_same(hold, wanted)
                return HoldResult(hold, HELD if hold.is_open(now) else LAPSED, duplicate=True)
        claim = self._claim_of(user_id, wanted.hold_id, now)
        if claim is None:
            return None
        ended_hold = _hold_of_body(wanted.hold_id, claim.body_hash)
        _check_same(ended_hold, wanted)
        status = claim.target if claim.target in (RELEASED, LAPSED) else CAPTURED  # else an entry's place
        return HoldResult(ended_hold, status, duplicate=True)

    def capture(self, user_id: str, hold_id: str, points: int | None, now: datetime) -> CommandResult:
        """Spend what is held, or some of it; the rest is released.

        Raises 404, 409 hold_ended for one that was released or has lapsed, 409 under_review, 422 for more
        points than are held. A second attempt returns the entry of the first.
        """

        def attempt(account: Account) -> CommandResult:
            hold = _hold_of(account.profile, hold_id)
            if hold is None:
                return self._capture_result(user_id, hold_id, points, now)
            at = max(clock_of(account.profile, now), unstamp(hold.held_at))
            if not hold.is_open(at):
                raise ApiError(409, "hold_ended", f"the hold lapsed at {hold.until}")
            if points is not None and points > hold.points:
                raise invalid_field("points", f"is more than the {hold.points} that are held")
            check_review(account.profile)
            draft = Draft(
                EntryKind.REDEEM, -(points or hold.points), reward_id=hold.reward_id, held_at=hold.held_at
            )
            return self.commands.attempt(
                account,
                at,
                lambda _: Command(draft, hold_id=hold_id),
                claim=(_claim_key(hold_id), _body(hold)),
            )

        return self.commands.retry(user_id, now, attempt)

    def _capture_result(self, user_id: str, hold_id: str, points: int | None, now: datetime) -> CommandResult:
        """Return the entry that captured a hold; raises 404, or 409 if it ended otherwise."""
        claim = self._claim_of(user_id, hold_id, now)
        if claim is None:
            raise ApiError(404, "not_found", "there is no such hold")
        entry = self.commands.accounts.ledger.get(user_id, claim.target)
        if entry is None:
            raise ApiError(409, "hold_ended", f"the hold was {claim.target}")
        if points is not None and points != -entry.draft.points:
            raise ApiError(409, "hold_ended", f"{-entry.draft.points} points of the hold were captured")
        return CommandResult(entry, duplicate=True)

    def release(self, user_id: str, hold_id: str, now: datetime) -> HoldResult:
        """End a hold without spending; raises 404, or 409 hold_ended for one that was captured.

        Releasing one that is released or has lapsed changes nothing.
        """
        results: list[HoldResult] = []  # one of each attempt: the last attempt's is the answer

        def remove_hold(profile: Profile) -> tuple[Profile, Sequence[dict[str, Any]]]:
            hold = _hold_of(profile, hold_id)
            if hold is None:
                results.append(self._release_result(user_id, hold_id, now))
                return profile, ()
            status = RELEASED if hold.is_open(clock_of(profile, now)) else LAPSED
            results.append(HoldResult(hold, status))
            changed = replace(profile, holds=holds_without(profile.holds, hold_id))
            claim = self._end_claim(user_id, hold, status)
            return changed, [{"Put": claim_request(self.commands.claims_table, claim, now)}]

        self.commands.change(user_id, now, remove_hold)
        return results[-1]

    def _release_result(self, user_id: str, hold_id: str, now: datetime) -> HoldResult:
        """Return how a hold ended that is no longer open; raises 404, or 409 if it was captured."""
        claim = self._claim_of(user_id, hold_id, now)
        if claim is None:
            raise ApiError(404, "not_found", "there is no such hold")
        if claim.target not in (RELEASED, LAPSED):
            raise ApiError(409, "hold_ended", "the hold was captured")
        return HoldResult(_hold_of_body(hold_id, claim.body_hash), claim.target, duplicate=True)

    def _claim_of(self, user_id: str, hold_id: str, now: datetime) -> IdempotencyClaim | None:
        key = _claim_key(hold_id)
        return self.commands.claims_of(user_id, [key], now).get(key)

    def _end_claim(self, user_id: str, hold: Hold, status: str) -> IdempotencyClaim:
        """Return the claim that says how a hold has ended."""
        return IdempotencyClaim(
            user_id, COMMAND + _claim_key(hold.hold_id), _body(hold), status, hold.held_at
        )


def _hold_of(profile: Profile, hold_id: str) -> Hold | None:
    return next((hold for hold in profile.holds if hold.hold_id == hold_id), None)


def _claim_key(hold_id: str) -> str:
    return f"hold:{hold_id}"


def _body(hold: Hold) -> str:
    """Return a hold without its id as the body of its claim, which `_hold_of_body` reads."""
    return f"{hold.held_at} {hold.until} {hold.points} {hold.reward_id}"


def _hold_of_body(hold_id: str, body: str) -> Hold:
    held_at, until, points, reward_id = body.split(" ", 3)
    return Hold(hold_id, int(points), reward_id, held_at, until)


def _check_same(earlier: Hold, wanted: Hold) -> None:
    """Raise 409 conflict unless two attempts with the same key ask for the same."""
    is_same_reward = (earlier.points, earlier.reward_id) == (wanted.points, wanted.reward_id)
    if not is_same_reward or _duration(earlier) != _duration(wanted):
        raise ApiError(409, "conflict", "idempotency_key was used for another body")


def _duration(hold: Hold) -> timedelta:
    return unstamp(hold.until) - unstamp(hold.held_at)
