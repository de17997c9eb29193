"""Settings of an account are entries: whatever changes, the entries lead from the one profile to the other."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from rules.days import stamp
from rules.engagement.account import decide_settings, profile_with_entries
from rules.engagement.account_settings import appended, setting_drafts, with_amnesty_dates, with_skipped
from rules.engagement.account_state import Account, Profile
from rules.engagement.board_settings import HIDDEN, with_settings
from rules.engagement.lots import Hold
from rules.engagement.review import ZONES_KEPT_MAX, end_review, put_under_review
from rules.engagement.streak import Checkpoint

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)
dates = st.integers(0, 40).map(lambda number: date(2026, 5, 1) + timedelta(days=number))
instants = st.integers(0, 400).map(lambda number: NOW + timedelta(minutes=number))
zones = st.sampled_from(("Europe/Berlin", "Asia/Tokyo", "+05:30"))
Change = tuple[str, object]
changes = st.one_of(
    st.tuples(st.just("zone"), st.tuples(instants, zones)),
    st.tuples(st.just("zone seen"), st.tuples(instants, zones)),
    st.tuples(st.just("clock"), st.tuples(instants, st.integers(-90, 90))),
    st.tuples(st.just("pause"), st.tuples(dates, st.integers(0, 9))),
    st.tuples(st.just("skipped"), st.sets(dates, min_size=1, max_size=3)),
    st.tuples(
        st.just("amnesties"), st.dictionaries(st.integers(1, 3), st.sets(dates, min_size=1), max_size=3)
    ),
    st.tuples(st.just("opening"), dates),
    st.tuples(st.just("review"), st.tuples(instants, st.sampled_from(("one reason", "another", "a third")))),
    st.tuples(st.just("release"), instants),
    st.tuples(
        st.just("boards"),
        st.tuples(instants, st.sampled_from(("class", HIDDEN)), st.sampled_from(("", "4b"))),
    ),
    st.tuples(st.just("hold"), st.integers(0, 9)),
    st.tuples(st.just("hold ended"), st.integers(0, 9)),
)


def changed(profile: Profile, change: tuple[str, object]) -> Profile:
    """Return a profile after a change, as the rules make it."""
    cover = profile.cover
    match change:
        case "zone", (datetime() as at, str(name)):
            return replace(
                profile, chosen_zone=name, tz_changes=(*profile.tz_changes, (stamp(at), name))[-10:]
            )
        case "zone seen", (datetime() as at, str(name)):
            seen = (*profile.zones_seen, (stamp(at), name))[-ZONES_KEPT_MAX:]
            return replace(profile, zones_seen=seen)
        case "clock", (datetime() as at, int(minutes)):
            return replace(profile, skews_seen=(*profile.skews_seen, (stamp(at), str(minutes)))[-4:])
        case "pause", (date() as first, int(length)):
            spans = tuple(sorted({*cover.pauses, (first, first + timedelta(days=length))}))
            return replace(profile, cover=replace(cover, pauses=spans))
        case "skipped", set() as some:
            return with_skipped(profile, some)
        case "amnesties", dict() as by_number:
            taken = with_amnesty_dates(profile, ()).cover.skipped
            left = ((number, tuple(sorted(some - taken))) for number, some in sorted(by_number.items()))
            return with_amnesty_dates(profile, tuple((number, some) for number, some in left if some))
        case "opening", date() as day:
            return replace(profile, cover=replace(cover, opening=Checkpoint(day, 3, 4, 9, 0)))
        case "review", (datetime() as at, str(reason)):
            return put_under_review(profile, at, reason)
        case "release", datetime() as at:
            return end_review(profile, at)
        case "boards", (datetime() as at, str(name), str(value)):
            boards = with_settings(profile.board_settings, {name: value}, at)
            return replace(profile, board_settings=boards)
        case "hold", int(number):
            hold = Hold(f"h{number}", 5 + number, "a mug, blue", stamp(NOW), stamp(NOW + timedelta(days=1)))
            return profile if hold in profile.holds else replace(profile, holds=(*profile.holds, hold))
        case "hold ended", int(number):
            return replace(profile, holds=tuple(h for h in profile.holds if h.hold_id != f"h{number}"))
    raise AssertionError(change)


@given(st.lists(st.lists(changes, max_size=3), max_size=6))
def test_a_profile_follows_from_its_entries_whatever_is_set(decisions: list[list[Change]]) -> None:
    profile, now = Profile("u"), NOW + timedelta(days=1)
    entries = [*decide_settings(Account(profile, {}), profile, now).entries]  # nothing is set yet: none
    for some in decisions:
        wanted = profile
        for change in some:
            wanted = changed(wanted, change)
        decision = decide_settings(Account(profile, {}), wanted, now)
        entries += decision.entries
        kept = {name: getattr(decision.profile, name) for name in ("head", "version", "updated_at")}
        assert decision.profile == replace(wanted, **kept, applied_through=decision.profile.applied_through)
        assert decision.is_change == (wanted != profile)
        assert not setting_drafts(decision.profile, wanted)
        profile, now = decision.profile, now + timedelta(hours=1)
    made_again = profile_with_entries(Profile("u"), entries)
    assert made_again == replace(profile, version=0, updated_at="")


def test_what_was_appended_is_found_also_where_it_repeats_what_was_there() -> None:
    assert appended((), ("a",)) == ("a",)
    assert appended(("a", "b"), ("a", "b", "a")) == ("a",)
    assert appended(("a", "b", "a", "b"), ("b", "a", "b", "a")) == ("a",)
    assert appended(("a", "b"), ("c", "d")) == ("c", "d")
    assert not appended(("a", "b"), ("a", "b"))


def test_an_account_that_begins_with_a_setting_still_knows_how_far_its_events_are_applied() -> None:
    begun = decide_settings(
        Account(Profile("u"), {}), replace(Profile("u"), tz_changes=((stamp(NOW), "UTC"),)), NOW
    )
    assert [entry.draft.kind for entry in begun.entries] == ["OPEN", "SETTING"]
    assert begun.profile.applied_through == "/0"
