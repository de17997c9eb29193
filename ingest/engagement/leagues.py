"""What a user sees of the leagues, and the switch to leave them."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from adapters.engagement.boards import BoardNames
from adapters.engagement.leagues import LeagueState, OpenLeague
from ingest.web.caller import ApiError
from ingest.web.json_schema import FLAG, TEXT, closed_object, flag, list_of, one_of, text, whole
from rules.days import stamp
from rules.engagement.leagues import Outcome, Zone

_ZONE = one_of([zone.value for zone in Zone]) | {"description": "where the member goes with this standing"}
_ROW = closed_object(
    {
        "rank": whole("who has the same points shares a rank", 1),
        "alias": text("chosen by the user, or a stable pseudonym"),
        "points": whole("of the week", 0),
        "is_me": FLAG,
        "zone": _ZONE,
    }
)
_DIVISION = closed_object(
    {"name": TEXT, "number": whole("1 is the lowest", 1), "of": whole("how many divisions there are", 2)}
)
_LEAGUE = closed_object(
    {
        "week": text("the week whose points count: 2026-W48"),
        "state": one_of(["open", "closing"]) | {"description": "closing: for ten minutes, until the result"},
        "closes_at": text("six hours after the week has ended everywhere on earth", format="date-time"),
        "entries": list_of(_ROW) | {"description": "the cohort, best first; some seconds old"},
    },
    type=["object", "null"],
    description="null: the user is in no league now, and joins with the next event that earns points; who has"
    " left the boards joins none",
)
_OUTCOME = closed_object(
    {
        "week": TEXT,
        "division": text("in which the user played"),
        "rank": whole("", 1),
        "points": whole("", 0),
        "zone": _ZONE,
        "members": whole("how many were ranked in the cohort", 1),
    },
    type=["object", "null"],
    description="of the newest league that has closed with the user in it",
)
LEAGUE_VIEW = closed_object(
    {
        "user_id": TEXT,
        "taking_part": flag("false: the user has left the leagues"),
        "division": _DIVISION,
        "league": _LEAGUE,
        "last": _OUTCOME,
    }
)
TAKING_PART = closed_object(
    {
        "taking_part": flag(
            "false: leave the leagues. Who comes back once the week's league has closed begins in the lowest"
            " division"
        )
    }
)
TAKING_PART_VIEW = closed_object({"user_id": TEXT, "taking_part": FLAG})


def league_view(
    user_id: str,
    state: LeagueState,
    names: BoardNames,
    is_erased: Callable[[str], bool],
    now: datetime,
) -> dict[str, Any]:
    """Return what a user sees of the leagues. Raises 404 if there are none."""
    membership, rules = state.membership, state.rules
    if rules is None:
        reason = (
            "there are no leagues this week: a book that declares them begins with the first Monday that is"
            " at least a day after its publication"
        )
        raise ApiError(404, "not_found", reason)
    number = rules.division_of(membership.name, membership.division)
    return {
        "user_id": user_id,
        "taking_part": not membership.left_at,
        "division": {
            "name": rules.divisions[number],
            "number": number + 1,
            "of": len(rules.divisions),
        },
        "league": state.league and _league(user_id, state.league, names, is_erased, now),
        "last": membership.outcome and _outcome(membership.outcome),
    }


def _league(
    user_id: str, league: OpenLeague, names: BoardNames, is_erased: Callable[[str], bool], now: datetime
) -> dict[str, Any]:
    rows = (row for row in league.ranked.standing if not is_erased(row.user_id))
    return {
        "week": league.week.name,
        "state": "open" if now < league.closes_at else "closing",
        "closes_at": stamp(league.closes_at),
        "entries": [
            {
                "rank": row.rank,
                "alias": names.name_of(row.user_id, league.ranked.aliases.get(row.user_id)),
                "points": row.points,
                "is_me": row.user_id == user_id,
                "zone": row.zone.value,
            }
            for row in rows
        ],
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    shown = {name: value for name, value in outcome._asdict().items() if name in _OUTCOME["properties"]}
    return {**shown, "zone": outcome.zone.value}
