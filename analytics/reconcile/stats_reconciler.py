"""One person's stats against the person's own responses, and their repair (the exact phase)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from adapters.platform.aws import pauses
from adapters.platform.items import Item, decode_item, encode_item
from adapters.questions.response_store import COUNTED, ResponseStore
from adapters.questions.user_stats_store import UserStatsStore, stats_from
from analytics.reconcile.differences import Difference, differences
from analytics.reconcile.profile_settings import UNREADABLE
from analytics.reconcile.stats_rows import AnswersLake
from analytics.reconcile.stats_scan import hashes_of, is_moved
from rules.days import stamp, unstamp
from rules.engagement.reconciliation import LAKE_LAG, Doubt, Look, Step, next_step
from rules.lake.question_entities import pseudonym
from rules.questions.answer_doubts import doubt_of
from rules.questions.answer_stats import fold_responses
from rules.questions.responses import Response, from_item, to_item
from rules.smoke_names import is_smoke

TABLE = "UserStats"
LOOKS_MAX = 4
PAUSE_SECONDS = 0.05
# The index by person has all that was written so long ago.
INDEXED = timedelta(seconds=10)
KEPT = ("version", "updated_at")
VERSION_MAX = 2**62


@dataclass(slots=True)
class PersonVerdict:
    """What was found of one person. is_settled: looked at long enough to say so.

    strangers: whose stats say that they have moved to this person, and no answer shows that they are one.
    """

    differences: list[Difference] = field(default_factory=list)
    disagreement: str = ""
    is_uncounted: bool = False
    is_repaired: bool = False
    is_settled: bool = True
    strangers: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StatsReconciler:
    """repair: False writes nothing at all."""

    stats: UserStatsStore
    responses: ResponseStore
    repair: bool

    def examine(
        self,
        person: str,
        moved: Iterable[str],
        lake: AnswersLake,
        now: datetime,
        *,
        is_stranger: bool = False,
    ) -> PersonVerdict:
        """Compare and repair one person's stats.

        person: a hash of the table. moved: older hashes whose stats have moved to this one.
        is_stranger: if the stats have moved, that is wrong.
        """
        verdict, moved = PersonVerdict(), set(moved)
        for times, _ in enumerate(pauses(LOOKS_MAX, base_seconds=PAUSE_SECONDS), 1):
            stored = self.stats.stored(person)
            if stored is not None and (is_moved(stored) or _is_fresh(stored, now)) and not is_stranger:
                verdict.is_settled = is_moved(stored)
                return verdict
            claimed = {*hashes_of(person, stored)[1:], *moved} - {person}
            try:
                hashes, counted, doubt = self._answers(person, claimed, lake, verdict, now)
            except UNREADABLE as error:
                verdict.disagreement = f"an answer cannot be read: {type(error).__name__}: {error}"
                return verdict
            verdict.strangers = sorted(moved - {*hashes})
            kept = {name for name in KEPT if stored is None or _is_sound(name, stored, now)}
            new = self._item(hashes, counted, stored, lake.rows.version(person), now)
            found = differences(
                person, TABLE, "", _lasting_attributes(stored, kept), _lasting_attributes(new, kept)
            )
            if stored and new and kept == {*KEPT} and not is_moved(stored):
                found += lake.rows.differences(person, {**new, **{name: stored[name] for name in KEPT}})
            step = next_step(Look(bool(found), is_behind=False, doubt=doubt), times, self.repair)
            if step is Step.LOOK_AGAIN:
                continue
            verdict.is_repaired = bool(
                step is Step.REPAIR and new is not None and self.stats.put_in_place(new, stored)
            )
            if step is not Step.REPAIR or verdict.is_repaired:
                verdict.differences = found
                return verdict
        verdict.is_settled = False
        return verdict

    def looks_right(self, stored: Item, lake: AnswersLake, since: str, now: datetime) -> bool:
        """Whether stats are what the lake says, are stored as we write them, and are not new."""
        try:
            kept = decode_item(stored)
            stats, hashes = stats_from(kept), hashes_of(kept["fingerprint_hash"], stored)
            whole = encode_item(self.stats.attributes(hashes[0], stats, tuple(hashes[1:])))
            is_whole = _lasting_attributes(stored, KEPT) == whole and kept["updated_at"] < since
            is_whole = is_whole and all(_is_sound(name, stored, now) for name in KEPT)
            is_whole = is_whole and stats.total_answers == lake.answers_under(hashes).answers
            return bool(is_whole and not lake.rows.differences(hashes[0], stored))
        except UNREADABLE:
            return False

    def hash_of(self, name: str, question_id: str) -> str | None:
        """Return the hash of somebody whom only the lake knows: one of those who answered this question."""
        found = self.responses.of_question(question_id)
        return next(
            (each.fingerprint_hash for each in found if pseudonym(each.fingerprint_hash) == name), None
        )

    def _answers(
        self,
        person: str,
        claimed: Iterable[str],
        lake: AnswersLake,
        verdict: PersonVerdict,
        now: datetime,
    ) -> tuple[list[str], list[Response], Doubt]:
        """Return a person's hashes, the counted responses, and what speaks against all; notes what it sees.

        claimed: other hashes that are said to be the person's.
        """
        found = [
            (stored, from_item(decode_item(stored)), is_counted)
            for stored, is_counted in self.responses.of_person([person, *sorted(claimed)])
        ]
        hashes = proven_hashes(person, claimed, [each for _, each, _ in found])
        own = [each for each in found if each[1].fingerprint_hash in hashes]
        counted = [each for _, each, is_counted in own if is_counted]
        left = [each for _, each, is_counted in own if not is_counted]
        genuine = [each for each in (*counted, *left) if not is_smoke(each.agent_id)]
        doubt, verdict.disagreement = doubt_of(genuine, lake.answers_under(hashes), now)
        if not doubt and (wrong := contradiction([(stored, each) for stored, each, _ in own])):
            doubt, verdict.disagreement = Doubt.CONTRADICTED, wrong
        verdict.is_uncounted = any(each.created_at < stamp(now - LAKE_LAG) for each in left)
        return hashes, counted, doubt

    def _item(
        self, hashes: list[str], counted: list[Response], stored: Item | None, past: int, now: datetime
    ) -> Item | None:
        """Return the item that must be there; None if nothing is counted. past: the lake's version.

        The version is a number that never restarts: the seconds since 1970, or more. So it is beyond all that
        the lake has, also where the item is gone or its version was set back.
        """
        if not counted and stored is None:
            return None
        before = decode_item(stored)["version"] if stored and _is_sound("version", stored, now) else 0
        version = max(before, past, int(now.timestamp())) + 1
        whole = self.stats.attributes(hashes[0], fold_responses(counted), tuple(hashes[1:]))
        return encode_item(whole | {"version": version, "updated_at": stamp(now)})


def _is_fresh(stored: Item, now: datetime) -> bool:
    """Whether a writer was here just now, so that the index may lack what was counted."""
    return bool(stamp(now - INDEXED) < stored.get("updated_at", {}).get("S", "") < stamp(now + LAKE_LAG))


def _is_sound(name: str, stored: Item, now: datetime) -> bool:
    """Whether the next writer can go on from an item's version, and read when it was written."""
    value = decode_item(stored).get(name)
    if name == "version":
        return type(value) is int and 0 < value < VERSION_MAX
    try:
        return isinstance(value, str) and stamp(unstamp(value)) == value < stamp(now + LAKE_LAG)
    except ValueError:
        return False


def _lasting_attributes(stored: Item | None, kept: Collection[str]) -> Item | None:
    """Return an item without what each writing changes."""
    return stored and {name: value for name, value in stored.items() if name not in kept}


def proven_hashes(person: str, hashes: Iterable[str], responses: Sequence[Response]) -> list[str]:
    """Return those of some hashes that the person's answers show to be the person's, the person's own first.

    Each answer names the other hashes of whoever gave it. responses: all that were given under these hashes.
    """
    names: dict[str, set[str]] = {}
    for response in responses:
        for other in response.other_hashes:
            names.setdefault(response.fingerprint_hash, set()).add(other)
            names.setdefault(other, set()).add(response.fingerprint_hash)
    known, waiting = {person}, [person]
    while waiting:
        more = names.get(waiting.pop(), set()) - known
        known |= more
        waiting += more
    return [person, *sorted(known.intersection(hashes) - {person})]


def contradiction(found: Sequence[tuple[Item, Response]]) -> str:
    """Return what is wrong with all answers of one person, in words; "" if nothing is."""
    for stored, response in found:
        if wrong := _changed_attributes(stored, response):
            return f"{' and '.join(wrong)} is not as it was written, in the answer to {response.question_id}"
    return ""


def _changed_attributes(stored: Item, response: Response) -> list[str]:
    """Return the attributes that no process writes so."""
    expected = encode_item(to_item(response))
    names = stored.keys() | expected.keys()
    wrong = sorted(name for name in names - {COUNTED} if stored.get(name) != expected.get(name))
    # An answer without a zone of its own counts by UTC, also for whoever has set a zone (rule 1).
    return [*wrong, *(["zone"] if response.zone != (response.timezone or "UTC") else [])]
