"""The oracle is only worth something if it disagrees with wrong code: each fault, planted in the real code, is found.

Faults are planted by name, because nothing here imports the rules (tests/unit/architecture/test_oracle_stands_apart.py).
"""

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.oracle.machines import Stream
from tests.oracle.plans import planned
from tests.oracle.rounds import played
from tests.support.engine import Engine

SEEDS_MAX = 240
Patch = pytest.MonkeyPatch


def real(place: str) -> Any:
    """What a dotted name stands for."""
    module, _, name = place.rpartition(".")
    return getattr(importlib.import_module(module), name)


def there_is_no_daily_cap(patch: Patch) -> None:
    patch.setattr("rules.engagement.earnings.points_left", lambda points, cap, earned: points)


def boosts_are_forgotten(patch: Patch) -> None:
    patch.setattr("rules.book.book.Book.factor", lambda *_: 1)


def amounts_are_rounded_up(patch: Patch) -> None:
    patch.setattr(
        "rules.book.point_rules.AmountRule.points", lambda self, amount: -(-amount // self.each) * self.earns
    )


def a_level_begins_with_a_point_more(patch: Patch) -> None:
    standing_of = real("rules.book.levels.standing_of")
    patch.setattr(
        "ingest.engagement.profiles.standing_of", lambda levels, points: standing_of(levels, points - 1)
    )


def the_zone_of_the_offset_is_forgotten(patch: Patch) -> None:
    date_of = real("rules.days.date_of")
    patch.setattr(
        "ingest.engagement.event_body.date_of",
        lambda moment, *given: date_of(replace(moment, offset=None), *given),
    )


def dates_begin_at_midnight(patch: Patch) -> None:
    date_of = real("rules.days.date_of")
    patch.setattr("ingest.engagement.event_body.date_of", lambda *given: date_of(*given[:3], ()))


def today_begins_at_midnight(patch: Patch) -> None:
    local_date = real("rules.days.local_date")
    patch.setattr("rules.engagement.account_state.local_date", lambda at, name, _: local_date(at, name, ()))


def anybody_may_backfill(patch: Patch) -> None:
    check_age = real("rules.engagement.events.check_age")
    patch.setattr(
        "ingest.engagement.event_body.check_age",
        lambda moment, now, may_backfill: check_age(moment, now, True),
    )


def a_key_with_another_body_is_a_duplicate(patch: Patch) -> None:
    patch.setattr("ingest.engagement.acceptance.body_hash", lambda _: "all the same")


def a_late_date_joins_no_runs(patch: Patch) -> None:
    advance = real("rules.engagement.streak.advance")

    def streak_after(old: Any, cover: Any, new_dates: Any, *_: Any, **__: Any) -> Any:
        for day in sorted(new_dates):
            if old is None or day > old.last:
                old = advance(old, day, cover)
        return old

    patch.setattr("rules.engagement.account.streak_after", streak_after)


def freezes_never_come_back(patch: Patch) -> None:
    freeze_drafts = real("rules.engagement.account.freeze_drafts")
    patch.setattr(
        "rules.engagement.account.freeze_drafts",
        lambda journalled, streak: [
            draft for draft in freeze_drafts(journalled, streak) if draft.kind != "REVERSE"
        ],
    )


def a_date_that_was_flown_over_is_a_miss(patch: Patch) -> None:
    patch.setattr("rules.engagement.account.flight_gap_dates", lambda *_: set())


def skipped_dates_are_misses(patch: Patch) -> None:
    patch.setattr("rules.engagement.account.skipped_dates", lambda *_, **__: frozenset())


def one_instant_earns_three_dates(patch: Patch) -> None:
    patch.setattr("rules.engagement.account.assign_dates", lambda events, *_, **__: list(events))


def a_streak_never_lapses(patch: Patch) -> None:
    effective = real("rules.engagement.streak.shown_streak")
    patch.setattr(
        "ingest.engagement.profiles.shown_streak",
        lambda streak, cover, when: effective(streak, cover, streak.last if streak else when),
    )


def a_command_forgets_its_key(patch: Patch) -> None:
    def once(self: Any, user_id: str, key: Any, body: Any, now: Any, make: Any) -> Any:
        return self.retry(user_id, now, lambda account: self.attempt(account, now, make))

    patch.setattr("ingest.engagement.points.commands.Commands.once", once)


def a_lost_answer_of_the_ledger_is_a_success(patch: Patch) -> None:
    """The processor takes every failed record for applied."""
    handler = real("processors.engagement.handler")

    def careless(event: Any, context: Any) -> Any:
        handler(event, context)
        return {"batchItemFailures": []}

    patch.setattr("processors.engagement.handler", careless)


def a_needless_repair_is_kept(patch: Patch) -> None:
    patch.setattr("rules.engagement.account.needless_repairs", lambda *_: [])


def a_run_is_repaired_however_long_ago_it_broke(patch: Patch) -> None:
    offered = real("rules.engagement.repairs.offered_repair")

    def late(run: Any, cover: Any, repairs: Any, rules: Any, today: Any) -> Any:
        return offered(run, cover, repairs, replace(rules, within_days=99), today)

    patch.setattr("ingest.engagement.points.commands.offered_repair", late)
    patch.setattr("ingest.engagement.profiles.offered_repair", late)


def a_bonus_is_never_taken_back(patch: Patch) -> None:
    bonus_drafts = real("adapters.engagement.achievements.bonus_drafts")
    patch.setattr(
        "adapters.engagement.achievements.bonus_drafts",
        lambda *given: [draft for draft in bonus_drafts(*given) if draft.points > 0],
    )


def a_bonus_stays_where_it_is(patch: Patch) -> None:
    """A late event brings the achievement forward, and its bonus keeps its date."""
    bonus_drafts = real("adapters.engagement.achievements.bonus_drafts")

    def unmoved(paid: Any, due: Any, paying: Any) -> Any:
        drafts = bonus_drafts(paid, due, paying)
        names = [draft.reward_id for draft in drafts]
        return [draft for draft in drafts if names.count(draft.reward_id) == 1]

    patch.setattr("adapters.engagement.achievements.bonus_drafts", unmoved)


def bonuses_lead_to_bonuses(patch: Patch) -> None:
    everything = real("rules.engagement.ledger.EVER_EARNED")
    patch.setattr("rules.engagement.achievements.EARNING", everything)


def bonuses_rank_users(patch: Patch) -> None:
    scores_of = real("processors.ranks._scores_of")
    patch.setattr(
        "processors.ranks._scores_of",
        lambda item: scores_of({name: each for name, each in item.items() if name != "bonus_points"}),
    )


def a_bonus_is_not_ever_earned(patch: Patch) -> None:
    patch.setattr("rules.engagement.account.EVER_EARNED", real("rules.engagement.ledger.EARNING"))


def a_reversal_makes_no_bonus_due(patch: Patch) -> None:
    due = real("rules.engagement.bonuses.may_change_bonuses")
    patch.setattr(
        "rules.engagement.account.may_change_bonuses",
        lambda draft: draft.kind != "CLAWBACK" and due(draft),
    )


def a_freeze_makes_no_bonus_due(patch: Patch) -> None:
    patch.setattr("rules.engagement.bonuses._FREEZES", frozenset())


def a_bonus_is_earned_on_the_date_of_its_declaration(patch: Patch) -> None:
    patch.setattr("rules.engagement.goals.first_date_to_come", lambda now: now.date())


def a_later_book_judges_what_occurred_before_it(patch: Patch) -> None:
    patch.setattr("rules.book.book.Books.judging", lambda self, *_: iter([self.newest]))


def a_later_book_excuses_dates_that_had_begun(patch: Patch) -> None:
    terms = real("rules.book.daily.daily_terms")

    def at_once(versions: Any) -> Any:
        *_, newest = versions
        return terms([newest._replace(number=1)])

    patch.setattr("rules.book.book.daily_terms", at_once)


def a_short_date_is_a_miss(patch: Patch) -> None:
    patch.setattr("rules.engagement.rest_days.short_dates", lambda _: frozenset())


def a_later_book_repairs_at_the_first_terms(patch: Patch) -> None:
    books = real("rules.book.book.Books")
    at, epoch = books.at, real("rules.days.EPOCH")
    patch.setattr(books, "at", lambda self, _: at(self, epoch))


def boards_count_whatever_comes_late(patch: Patch) -> None:
    far = real("rules.days.LAST_CLOCK")
    patch.setattr("rules.engagement.period_points.final_at", lambda *_: far)


def boards_forget_what_is_taken_back(patch: Patch) -> None:
    counted, kind = (
        real("rules.engagement.period_points.is_counted"),
        real("rules.engagement.ledger.EntryKind"),
    )
    patch.setattr(
        "rules.engagement.period_points.is_counted",
        lambda entry: counted(entry) and entry.draft.kind is kind.EARN,
    )


def a_board_ends_at_midnight_in_utc(patch: Patch) -> None:
    patch.setattr("rules.engagement.periods.EVERYWHERE", "+00:00")


# Each fault, with rounds that find it at once: they come first.
FAULTS: dict[Callable[[Patch], None], tuple[int, ...]] = {
    there_is_no_daily_cap: (2, 1),
    boosts_are_forgotten: (2, 12, 22),
    amounts_are_rounded_up: (6, 30, 42),
    a_level_begins_with_a_point_more: (16, 37),
    the_zone_of_the_offset_is_forgotten: (4, 6),
    dates_begin_at_midnight: (5, 9),
    today_begins_at_midnight: (85, 205),
    anybody_may_backfill: (9, 0),
    a_key_with_another_body_is_a_duplicate: (2, 6),
    a_late_date_joins_no_runs: (1, 3),
    freezes_never_come_back: (6, 10, 17),
    a_needless_repair_is_kept: (17, 22, 28),
    a_run_is_repaired_however_long_ago_it_broke: (5, 28, 57),
    a_date_that_was_flown_over_is_a_miss: (4, 24, 54),
    skipped_dates_are_misses: (17, 26, 36),
    one_instant_earns_three_dates: (5, 165, 195),
    a_streak_never_lapses: (1, 0),
    a_command_forgets_its_key: (2, 8),
    a_lost_answer_of_the_ledger_is_a_success: (11, 16),
    a_bonus_is_never_taken_back: (0, 2, 9),
    a_bonus_stays_where_it_is: (0, 9, 10),
    bonuses_lead_to_bonuses: (10, 12, 16),
    bonuses_rank_users: (0, 2, 3),
    a_bonus_is_not_ever_earned: (0, 2, 3),
    a_reversal_makes_no_bonus_due: (0, 10, 16),
    a_freeze_makes_no_bonus_due: (10, 17, 58),
    a_bonus_is_earned_on_the_date_of_its_declaration: (0, 21, 36),
    a_later_book_judges_what_occurred_before_it: (9, 18, 39),
    a_later_book_excuses_dates_that_had_begun: (0, 30, 44),
    a_short_date_is_a_miss: (44, 45, 65),
    a_later_book_repairs_at_the_first_terms: (0, 6),
    boards_count_whatever_comes_late: (0, 1, 2),
    boards_forget_what_is_taken_back: (0, 1, 2),
    a_board_ends_at_midnight_in_utc: (0, 1, 2),
}


@pytest.mark.parametrize("plant", FAULTS, ids=lambda fault: fault.__name__)
def test_is_found(
    plant: Callable[[Patch], None], environment: Engine, stream: Stream, monkeypatch: Patch
) -> None:
    for seed in (*FAULTS[plant], *range(SEEDS_MAX)):
        with monkeypatch.context() as fault:
            plant(fault)
            try:
                if played(environment, stream, planned(seed), fault):
                    return
            except AssertionError:
                return  # It does not come to an end: that is a fault found, too.
    pytest.fail(f"no round found anything wrong with {plant.__name__}")
