"""Who is whose friend: consent, blocks, bounds, and what one may learn of the other."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import stamp
from rules.engagement.friends import (
    ASKED_MAX,
    BLOCKED_MAX,
    REQUEST_KEPT,
    REQUESTS_MAX,
    Circle,
    Consent,
    FriendsRefused,
    Tie,
    Ties,
    TieState,
    befriend,
    block,
    part,
    unblock,
)

NOW = datetime(2026, 11, 29, 12, tzinfo=UTC)
ANN, BOB = Circle("ann"), Circle("bob")
FRIEND, ASKED, REQUEST, BLOCKED, ENDED = TieState


def consent(**changes: Any) -> Consent:
    return replace(Consent(NOW, 50, "pair"), **changes)


def after(mine: Circle, theirs: Circle, ties: Ties) -> tuple[Circle, Circle]:
    """Return both circles after their ties have changed."""
    circles = []
    for circle, other, tie in zip((mine, theirs), (theirs, mine), ties, strict=True):
        left = {name: each for name, each in circle.ties.items() if name != other.user_id}
        circles.append(replace(circle, ties=left | ({other.user_id: tie} if tie else {})))
    return circles[0], circles[1]


def states(*circles: Circle) -> list[TieState | None]:
    return [next((tie.state for tie in circle.ties.values()), None) for circle in circles]


def full(user: str, state: TieState, number: int, since: datetime = NOW) -> Circle:
    return Circle(user, {f"u{each}": Tie(user, f"u{each}", state, stamp(since)) for each in range(number)})


def test_both_must_consent() -> None:
    ann, bob = after(ANN, BOB, befriend(ANN, BOB, consent()))
    assert states(ann, bob) == [ASKED, REQUEST]
    assert states(*after(ann, bob, befriend(ann, bob, consent()))) == [ASKED, REQUEST]
    bob, ann = after(bob, ann, befriend(bob, ann, consent(now=NOW + timedelta(hours=1))))
    assert states(ann, bob) == [FRIEND, FRIEND]
    assert ann.ties["bob"].since == bob.ties["ann"].since == stamp(NOW + timedelta(hours=1))
    assert befriend(ann, bob, consent(pair_id="another")) == (ann.ties["bob"], bob.ties["ann"])


def test_a_server_vouches_for_both() -> None:
    assert states(*after(ANN, BOB, befriend(ANN, BOB, consent(vouched=True)))) == [FRIEND, FRIEND]


def test_either_side_ends_a_pair_and_a_new_one_is_another() -> None:
    ann, bob = after(ANN, BOB, befriend(ANN, BOB, consent(vouched=True)))
    for mine, theirs in ((ann, bob), (bob, ann)):
        ended = after(mine, theirs, part(mine, theirs, NOW))
        assert states(*ended) == [ENDED, ENDED]
        assert all(tie.pair_id == "pair" and tie.ended_at for circle in ended for tie in circle.ties.values())
        again = befriend(*ended, consent(vouched=True, pair_id="second"))
        assert [tie and tie.pair_id for tie in again] == ["second", "second"]


def test_a_request_is_taken_back_or_declined() -> None:
    ann, bob = after(ANN, BOB, befriend(ANN, BOB, consent()))
    assert part(ann, bob, NOW) == part(bob, ann, NOW) == (None, None)


def test_a_request_lapses() -> None:
    ann, bob = after(ANN, BOB, befriend(ANN, BOB, consent()))
    later = consent(now=NOW + REQUEST_KEPT)
    assert states(*after(bob, ann, befriend(bob, ann, later))) == [ASKED, REQUEST]
    in_time = consent(now=NOW + REQUEST_KEPT - timedelta(seconds=1))
    assert states(*after(bob, ann, befriend(bob, ann, in_time))) == [FRIEND, FRIEND]


def test_whoever_is_blocked_or_asks_for_an_erased_user_sees_what_everybody_sees() -> None:
    bob = after(BOB, ANN, block(BOB, ANN, NOW))[0]
    usual, told = befriend(ANN, BOB, consent())
    assert told
    assert told.state is REQUEST
    assert befriend(ANN, bob, consent()) == (usual, bob.ties["ann"])
    assert befriend(ANN, BOB, consent(is_heard=False)) == (usual, None)
    # However full the other's list is: else fifty accounts of one person tell who is blocked, or erased
    crowded = full("bob", REQUEST, REQUESTS_MAX)
    crowded_and_blocking = replace(crowded, ties={**crowded.ties, **bob.ties})
    assert befriend(ANN, crowded, consent(is_heard=False)) == (usual, None)
    assert befriend(ANN, crowded, consent()) == (usual, None)
    assert befriend(ANN, crowded_and_blocking, consent()) == (usual, bob.ties["ann"])


def test_a_request_that_a_full_list_has_not_heard_is_heard_when_it_is_repeated() -> None:
    crowded = full("bob", REQUEST, REQUESTS_MAX)
    ann, crowded = after(ANN, crowded, befriend(ANN, crowded, consent()))
    later = consent(now=NOW + timedelta(days=1))
    assert befriend(ann, crowded, later) == (ann.ties["bob"], None)
    ann, bob = after(ann, BOB, befriend(ann, BOB, later))
    assert states(ann, bob) == [ASKED, REQUEST]
    assert bob.ties["ann"].since == ann.ties["bob"].since == stamp(NOW), "both lapse at once"


def test_who_asks_somebody_whose_request_was_not_heard_has_a_friend() -> None:
    crowded = full("bob", REQUEST, REQUESTS_MAX)
    ann, crowded = after(ANN, crowded, befriend(ANN, crowded, consent()))
    tie, back = befriend(crowded, ann, consent())
    assert tie
    assert back
    assert (tie.state, back.state) == (FRIEND, FRIEND)


def test_a_block_ends_a_pair_and_no_server_makes_one() -> None:
    ann, bob = after(ANN, BOB, befriend(ANN, BOB, consent(vouched=True)))
    bob, ann = after(bob, ann, block(bob, ann, NOW))
    assert states(ann, bob) == [ENDED, BLOCKED]
    assert bob.ties["ann"].pair_id == "pair"  # so that the lake hears of the end
    for mine, theirs, vouched in ((bob, ann, False), (bob, ann, True), (ann, bob, True)):
        with pytest.raises(FriendsRefused) as refused:
            befriend(mine, theirs, consent(vouched=vouched))
        assert refused.value.code == "blocked"
    assert part(ann, bob, NOW) == (None, bob.ties["ann"])
    ann, bob = after(ann, bob, befriend(ann, bob, consent()))
    assert states(ann, bob) == [ASKED, BLOCKED]
    assert unblock(bob, ann, NOW) == (None, None)  # what was asked meanwhile is forgotten


def test_the_bounds_hold() -> None:
    with pytest.raises(FriendsRefused, match="and no more") as refused:
        befriend(full("ann", FRIEND, 50), BOB, consent())
    assert refused.value.code == "friends_max"
    with pytest.raises(FriendsRefused, match="the other user has 50") as refused:
        befriend(ANN, full("bob", FRIEND, 50), consent(vouched=True))
    with pytest.raises(FriendsRefused, match="wait for an answer") as refused:
        befriend(full("ann", ASKED, ASKED_MAX), BOB, consent())
    assert refused.value.code == "requests_max"
    lapsed = full("bob", REQUEST, REQUESTS_MAX, NOW - REQUEST_KEPT)
    assert befriend(ANN, lapsed, consent())[1], "requests that have lapsed leave room"
    with pytest.raises(FriendsRefused) as refused:
        block(full("ann", BLOCKED, BLOCKED_MAX), BOB, NOW)
    assert refused.value.code == "blocked_max"


ACTS = {
    "befriend": lambda mine, theirs: befriend(mine, theirs, consent()),
    "vouch": lambda mine, theirs: befriend(mine, theirs, consent(vouched=True)),
    "part": lambda mine, theirs: part(mine, theirs, NOW),
    "block": lambda mine, theirs: block(mine, theirs, NOW),
    "unblock": lambda mine, theirs: unblock(mine, theirs, NOW),
}


@given(st.lists(st.tuples(st.booleans(), st.sampled_from(sorted(ACTS))), max_size=12))
def test_both_sides_agree_after_any_acts(acts: list[tuple[bool, str]]) -> None:
    circles = {"ann": ANN, "bob": BOB}
    consents: set[str] = set()  # plainly: who wants to be the other's friend
    blocks: set[str] = set()
    are_friends = False
    for is_ann, act in acts:
        me, other = ("ann", "bob") if is_ann else ("bob", "ann")
        try:
            ties = ACTS[act](circles[me], circles[other])
        except FriendsRefused:
            assert blocks
            assert act in ("befriend", "vouch")
            continue
        circles[me], circles[other] = after(circles[me], circles[other], ties)
        if act == "vouch":
            are_friends = True
        elif act == "befriend":
            consents.add(me)
            are_friends = are_friends or (consents == {"ann", "bob"} and not blocks)
        elif act == "part" and me not in blocks:
            consents, are_friends = set(), False
        elif act == "block":
            blocks.add(me)
            consents, are_friends = set(), False
        elif act == "unblock" and me in blocks:
            blocks.remove(me)
            consents.discard(other)
        ann, bob = (circles[name].tie(another, NOW) for name, another in (("ann", "bob"), ("bob", "ann")))
        assert (ann is not None and ann.state is FRIEND) == (bob is not None and bob.state is FRIEND)
        assert (ann is not None and ann.state is FRIEND) == are_friends
        assert {name for name, tie in (("ann", ann), ("bob", bob)) if tie and tie.state is BLOCKED} == blocks
        for tie, back in ((ann, bob), (bob, ann)):
            if tie and tie.state is REQUEST:
                assert back
                assert back.state is ASKED
