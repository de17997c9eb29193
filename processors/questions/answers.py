"""Responses stream -> UserStats, exactly once (rule 7).

A response is in the stats if and only if it is marked: stats and mark are written in one transaction, which
is refused as a whole where the mark is there, the response is gone or the stats have moved. So a crash leaves
all or nothing, and whoever comes a second time writes nothing. Who answered is known by a keyed hash alone.
AnswerCounter decides what to write; AnswerCounts (adapters.questions.user_stats_store) writes it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from adapters import clock, settings
from adapters.logs import Logger
from adapters.platform.aws import client, pauses
from adapters.platform.fence import fence_writer
from adapters.platform.items import decode_item
from adapters.platform.tables import chunks
from adapters.questions.response_store import ResponseStore
from adapters.questions.user_stats_store import RESPONSES_MAX, AnswerCounts, StoredStats, UserStatsStore
from processors.batches import TRANSIENT, BatchResult, ConsumerSettings, Record, stream_consumer
from rules.days import stamp
from rules.questions.answer_stats import ResponseTooOld, Stats, add_responses, fold_responses
from rules.questions.responses import Response, from_item

logger = Logger(service="answers")
ATTEMPTS_MAX = 20
# The index by person has all that was written that long ago.
SETTLED = timedelta(seconds=10)
Pairs = Sequence[tuple[Record, Response]]


class StatsBusy(Exception):
    """The person's stats change just now; it is safe to repeat, later."""


@dataclass(frozen=True)
class AnswersSettings(ConsumerSettings):
    """Settings of AnswersFunction."""

    responses_table: str
    user_stats_table: str
    stats_shards: int  # parts of an index of UserStats


@dataclass(frozen=True, slots=True)
class AnswerCounter:
    """Counts responses in."""

    counts: AnswerCounts

    def apply(self, records: Sequence[Record], now: datetime) -> BatchResult:
        """Count a batch of stream records, person by person; one person's trouble is not another's."""
        outcome = BatchResult()
        by_person: dict[str, list[tuple[Record, Response]]] = {}
        for record, response in outcome.read(records, _response_of):
            by_person.setdefault(response.fingerprint_hash, []).append((record, response))

        def count(person: str, pairs: Pairs) -> None:
            counted = self.count(person, [response for _, response in pairs], now)
            outcome.counts.update(counted=counted, duplicates=len(pairs) - counted)

        for person, pairs in by_person.items():
            outcome.attempt(pairs, partial(count, person), logger, (*TRANSIENT, StatsBusy), person=person)
        return outcome

    def count(self, person: str, responses: Sequence[Response], now: datetime) -> int:
        """Count a person's responses, each once whoever else counts it; returns how many were new."""
        distinct = {response.key: response for response in responses}
        chunked = chunks(distinct.values(), RESPONSES_MAX)
        return sum(self._count_chunk(person, fresh, now) for fresh in chunked)

    def _count_chunk(self, person: str, fresh: list[Response], now: datetime) -> int:
        older = {hashed for response in fresh for hashed in response.older_hashes}
        kept = self.counts.stats.of(person, older)
        for _ in pauses(ATTEMPTS_MAX):
            after = self._stats_with(kept, fresh, now)
            refusal = self.counts.count((kept, after), fresh, now)
            if refusal is None:
                return len(fresh)
            if refusal.is_marked:
                done = self.counts.responses.counted(response.key for response in fresh)
                fresh = [response for response in fresh if response.key not in done]
            if not fresh:
                return 0
            if refusal.has_moved:
                kept = self.counts.stats.of(person, older)
        raise StatsBusy(person)

    def _stats_with(self, kept: StoredStats, fresh: list[Response], now: datetime) -> Stats:
        """Return the stats with answers added; from all responses if that cannot be done."""
        try:
            if not kept.is_split_over_hashes:
                return add_responses(kept.stats, fresh)
        except ResponseTooOld:
            pass
        logger.info("made again from all responses", extra={"person": kept.person})
        return fold_responses([*self._responses(kept, now)[0], *fresh])

    def _responses(self, kept: StoredStats, now: datetime) -> tuple[list[Response], list[Response]]:
        """Return a person's responses: those in the stats, and the others. Raises StatsBusy."""
        if kept.updated_at > stamp(now - SETTLED):
            raise StatsBusy(kept.person)
        counted: list[Response] = []
        left: list[Response] = []
        for each, is_marked in self.counts.responses.of_person(kept.hashes):
            (counted if is_marked else left).append(from_item(decode_item(each)))
        return counted, left

    def rebuild(self, person: str, now: datetime) -> Stats:
        """Compute a person's stats from their responses, and put them; returns them.

        Counted are those that are marked; what is not marked yet is then counted as the stream would.
        Raises StatsBusy if the stats have changed in the last seconds, or change meanwhile.
        """
        before = self.counts.stats.of(person)
        counted, left = self._responses(before, now)
        stats = fold_responses(counted)
        if stats != before.stats and not self.counts.replace(before, stats, now):
            raise StatsBusy(person)
        self.count(before.person, left, now)
        return self.counts.stats.of(person).stats


def _response_of(record: Record) -> Response:
    return from_item(decode_item(record["dynamodb"]["NewImage"]))


@settings.wiring(AnswersSettings)
def _parts(config: AnswersSettings) -> AnswerCounter:
    dynamodb = fence_writer(client("dynamodb"))
    stats = UserStatsStore(dynamodb, config.user_stats_table, config.stats_shards)
    return AnswerCounter(AnswerCounts(dynamodb, stats, ResponseStore(dynamodb, config.responses_table)))


def rebuild(fingerprint_hash: str) -> Stats:
    """Rebuild one person's stats: for an operator. Raises StatsBusy."""
    return _parts().rebuild(fingerprint_hash, clock.now())


def _rebuild_people(event: dict[str, Any], _context: Any) -> dict[str, Any]:
    return {"rebuilt": {each: rebuild(each).total_points for each in event["streakline_rebuild"]}}


@stream_consumer("answers", logger, otherwise=_rebuild_people)
def handler(records: list[Record], now: datetime) -> BatchResult:
    """Lambda entry: a batch of Responses' stream.

    {"streakline_rebuild": [fingerprint_hash, ...]} rebuilds these people's stats instead.
    """
    return _parts().apply([record for record in records if record["eventName"] == "INSERT"], now)
