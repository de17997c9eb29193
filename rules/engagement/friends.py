"""Who is whose friend (docs/rules.md, rule 26): what users ask of each other, as both of them must consent.

The app has its own graph. Each of two users has a *tie* to the other: a friend, a request, a block. A pair is
two ties that are written at once. What one may learn of the other does not depend on whether the other
exists, was erased, or has blocked the one who asks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from rules.days import stamp, unstamp

# How many requests of a user may be open, and how many may wait for the user. Both are shown in one list.
# More who ask a user are not heard, and not told so: a refusal would tell them from who is blocked.
ASKED_MAX = REQUESTS_MAX = 50
BLOCKED_MAX = 200
REQUEST_KEPT = timedelta(days=30)  # so long a request waits for an answer
ENDED_KEPT = timedelta(days=7)  # so long a tie that has ended stays: the lake gets it from the table's stream


class TieState(StrEnum):
    """What a user has with another one."""

    FRIEND = "friend"
    ASKED = "asked"  # the user has asked; the other has not answered
    REQUEST = "request"  # the other has asked
    BLOCKED = "blocked"  # by the user; the other does not learn of it
    ENDED = "ended"


class Role(StrEnum):
    """How one of a pair came to it."""

    ASKER = "asker"
    ANSWERER = "answerer"
    SERVER = "server"  # which said that both had agreed


class Ending(StrEnum):
    """Why a pair has ended. It stands with the one who ended it: the other one does not learn of it."""

    PARTING = "parting"
    BLOCK = "block"
    ERASURE = "erasure"  # of the other; it stands with the one who is left


OPEN = (TieState.ASKED, TieState.REQUEST)
ASKED, BLOCKED, ENDED, FRIEND = TieState.ASKED, TieState.BLOCKED, TieState.ENDED, TieState.FRIEND


@dataclass(frozen=True, slots=True)
class Tie:
    """What a user has with another one, as it is stored."""

    user_id: str
    friend_id: str
    state: TieState
    since: str  # a stamp: when the pair began, also of one that has ended; or when one asked or blocked
    pair_id: str = ""  # of both ties of a pair: a random text, by which the lake joins them; "": never a pair
    ended_at: str = ""  # a stamp; "": the pair has not ended
    role: str = ""  # one of Role, of a pair; "": nobody knows
    ending: str = ""  # one of Ending, with the one who ended the pair; "": with the other one

    @property
    def state_since(self) -> str:
        """A stamp: since when the state is what it is."""
        return self.ended_at or self.since

    @property
    def expires_at(self) -> datetime | None:
        """When nobody needs the tie any more; None: it stays."""
        if self.state in OPEN:
            return unstamp(self.since) + REQUEST_KEPT
        return unstamp(self.ended_at) + ENDED_KEPT if self.state is ENDED else None


@dataclass(frozen=True, slots=True)
class Circle:
    """One user's ties."""

    user_id: str
    ties: Mapping[str, Tie] = field(default_factory=dict)  # by the other user
    version: str = ""  # another one after each change; "": nothing is stored

    def tie(self, other: str, now: datetime) -> Tie | None:
        """Return the tie to another user; None for none, for one that has ended, or a request that lapsed."""
        tie = self.ties.get(other)
        return tie if tie and _stands(tie, now) else None

    def of(self, state: TieState, now: datetime) -> list[Tie]:
        """Return the ties in a state, the oldest first."""
        found = (tie for tie in self.ties.values() if tie.state is state and _stands(tie, now))
        return sorted(found, key=lambda tie: (tie.state_since, tie.friend_id))


def _stands(tie: Tie, now: datetime) -> bool:
    expires = tie.expires_at
    return tie.state is not ENDED and (expires is None or now < expires)


class FriendsRefused(ValueError):
    """What a user asks for is not possible. code: of the API's refusal."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


Ties = tuple[Tie | None, Tie | None]  # of the one who asks to the other, and of the other back; None: none


@dataclass(frozen=True, slots=True)
class Consent:
    """One user's wish to be the friend of another one."""

    now: datetime
    friends_max: int  # the book's
    pair_id: str  # of the pair that may begin
    vouched: bool = False  # a server says that both have agreed
    is_heard: bool = True  # whether the other may be told; not if the other was erased
    since: str = ""  # a stamp: when the pair began, as a server says that vouches; "": now


def befriend(mine: Circle, theirs: Circle, consent: Consent) -> Ties:
    """Return both ties after a user has consented to be another's friend.

    If the other has consented before, or a server vouches for both, the pair begins. Otherwise the consent is
    a request. One that was not heard, because many others waited, is heard when it is repeated. Raises
    FriendsRefused.
    """
    tie, back = mine.tie(theirs.user_id, consent.now), theirs.tie(mine.user_id, consent.now)
    state = tie.state if tie else None
    if state is FRIEND:
        return tie, back
    if state is BLOCKED:
        raise FriendsRefused("blocked", "the user has blocked the other one")
    if consent.vouched or state is TieState.REQUEST or (back and back.state is ASKED):
        return _begin_pair(mine, theirs, consent)
    return _ask(mine, theirs, consent)


def _begin_pair(mine: Circle, theirs: Circle, consent: Consent) -> Ties:
    back = theirs.tie(mine.user_id, consent.now)
    if back and back.state is BLOCKED:  # only a server gets here: a blocked user has no request to answer
        raise FriendsRefused("blocked", "the other user has blocked this one")
    _check_room(mine, "the user", consent)
    _check_room(theirs, "the other user", consent)
    since = consent.since or stamp(consent.now)
    roles = (Role.SERVER, Role.SERVER) if consent.vouched else (Role.ANSWERER, Role.ASKER)
    tie, other = (Tie("", "", FRIEND, since, consent.pair_id, role=role) for role in roles)
    return (
        replace(tie, user_id=mine.user_id, friend_id=theirs.user_id),
        replace(other, user_id=theirs.user_id, friend_id=mine.user_id),
    )


def _ask(mine: Circle, theirs: Circle, consent: Consent) -> Ties:
    now, back = consent.now, theirs.tie(mine.user_id, consent.now)
    asked = mine.tie(theirs.user_id, now)
    if asked is None:
        _check_room(mine, "the user", consent)
        if len(mine.of(ASKED, now)) >= ASKED_MAX:
            raise FriendsRefused("requests_max", f"{ASKED_MAX} requests of the user wait for an answer")
        asked = Tie(mine.user_id, theirs.user_id, ASKED, stamp(now))
    is_full = len(theirs.of(TieState.REQUEST, now)) >= REQUESTS_MAX
    # The other has heard it, has blocked the user, was erased, or hears no more: who asks sees one answer.
    if back or not consent.is_heard or is_full:
        return asked, back
    request = replace(asked, user_id=theirs.user_id, friend_id=mine.user_id, state=TieState.REQUEST)
    return asked, request


def _check_room(circle: Circle, who: str, consent: Consent) -> None:
    if len(circle.of(FRIEND, consent.now)) >= consent.friends_max:
        raise FriendsRefused("friends_max", f"{who} has {consent.friends_max} friends, and no more may be")


def part(mine: Circle, theirs: Circle, now: datetime) -> Ties:
    """Return both ties after a user has ended a pair, declined a request, or taken one back."""
    tie, back = mine.tie(theirs.user_id, now), theirs.tie(mine.user_id, now)
    if tie is None or tie.state is BLOCKED:
        return tie, back
    return _without(tie, now, Ending.PARTING), _without(back, now)


def block(mine: Circle, theirs: Circle, now: datetime) -> Ties:
    """Return both ties after a user has blocked another one. Raises FriendsRefused."""
    tie, back = mine.tie(theirs.user_id, now), theirs.tie(mine.user_id, now)
    if tie and tie.state is BLOCKED:
        return tie, back
    if len(mine.of(BLOCKED, now)) >= BLOCKED_MAX:
        raise FriendsRefused("blocked_max", f"the user has blocked {BLOCKED_MAX} others")
    blocked = Tie(mine.user_id, theirs.user_id, BLOCKED, stamp(now))
    if tie and tie.state is FRIEND:  # the lake learns from it that the pair has ended, and since when it was
        blocked = replace(tie, state=BLOCKED, ended_at=stamp(now), ending=Ending.BLOCK)
    return blocked, _without(back, now)


def unblock(mine: Circle, theirs: Circle, now: datetime) -> Ties:
    """Return both ties after a user has let another one ask again. What was asked meanwhile is forgotten."""
    tie, back = mine.tie(theirs.user_id, now), theirs.tie(mine.user_id, now)
    if tie is None or tie.state is not BLOCKED:
        return tie, back
    return None, _without(back, now)


def _without(tie: Tie | None, now: datetime, ending: str = "") -> Tie | None:
    """Return a tie after it has ended: a pair leaves one, a request nothing. A block stays."""
    if tie is None or tie.state is BLOCKED:
        return tie
    return replace(tie, state=ENDED, ended_at=stamp(now), ending=ending) if tie.state is FRIEND else None
