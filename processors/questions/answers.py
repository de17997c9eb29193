"""Counts responses into the stats of the person who answered, each exactly once (rule 7).

It reads the stream of the table Responses, and writes UserStats. A response is counted if and only if it has
a mark, because one transaction writes stats and mark. DynamoDB refuses the transaction if the response has
its mark already, or was deleted, or if the stats have changed. So a crash leaves all or nothing, and a second
delivery of a response writes nothing.

A person is known by keyed hashes alone, one for each key (rules/key_ring.py). So after a new key the person
answers under a new hash, and the response has those by earlier keys as `older_hashes`. The stats stand under
one hash, and move when the person has a newer one (adapters/questions/user_stats_store.py).
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.aws import pauses
from adapters.platform.items import decode_item
from adapters.platform.tables import chunks
from adapters.questions.response_store import COUNTED, ResponseStore
from adapters.questions.user_stats_store import RESPONSES_MAX, StoredStats, UserStatsStore
from processors.batches import TRANSIENT, BatchResult, ConsumerSettings, Record, stream_consumer
from rules.days import stamp
from rules.questions.answer_stats import ResponseTooOld, Stats, add_responses, fold_responses
from rules.questions.responses import Response, from_item

logger = Logger(service="answers")
ATTEMPTS_MAX = 20
# The index by person is eventually consistent. It has all responses that are at least this old.
INDEX_LAG = timedelta(seconds=10)
Pairs = Sequence[tuple[Record, Response]]


class StatsBusy(Exception):
    """The person's stats keep changing. It is safe to repeat the work later."""


@dataclass(frozen=True)
class AnswersSettings(ConsumerSettings):
    """Settings of AnswersFunction."""

    responses_table: str
    user_stats_table: str
    stats_shards: int  # how many partitions the leaderboard's index has


@dataclass(frozen=True, slots=True)
class AnswerCounter:
    """Counts responses into stats."""

    stats: UserStatsStore
    responses: ResponseStore

    def apply(self, records: Sequence[Record], now: datetime) -> BatchResult:
        """Count a batch of stream records, person by person. One person's error does not affect others."""
        outcome = BatchResult()
        by_person: dict[str, list[tuple[Record, Response]]] = {}
        for record, response in outcome.read(records, _response_of):
            by_person.setdefault(response.fingerprint_hash, []).append((record, response))

        for person, pairs in by_person.items():
            add = partial(self._add_pairs, person, now=now, outcome=outcome)
            outcome.attempt(pairs, add, logger, (*TRANSIENT, StatsBusy), person=person)
        return outcome

    def _add_pairs(self, person: str, pairs: Pairs, now: datetime, outcome: BatchResult) -> None:
        """Add responses to their person's stats, each once even if others add them, too."""
        distinct = {response.key: response for _, response in pairs}
        added = sum(self._add_chunk(person, chunk, now) for chunk in chunks(distinct.values(), RESPONSES_MAX))
        outcome.counts.update(counted=added, duplicates=len(pairs) - added)

    def _add_chunk(self, person: str, responses: list[Response], now: datetime) -> int:
        """Add responses in one transaction; returns how many nobody had added before. Raises StatsBusy."""
        older_hashes = {hashed for response in responses for hashed in response.older_hashes}
        for _ in pauses(ATTEMPTS_MAX):
            stored = self.stats.of(person, older_hashes)
            marks = [self.responses.mark_action(response, stamp(now)) for response in responses]
            if self.stats.put_with_marks(stored, self._stats_with(stored, responses, now), marks, now):
                return len(responses)
            keys = self.responses.uncounted(response.key for response in responses)
            responses = [response for response in responses if response.key in keys]
            if not responses:
                return 0
        raise StatsBusy(person)

    def _stats_with(self, stored: StoredStats, responses: list[Response], now: datetime) -> Stats:
        """Return stats with responses added; made anew if one is too old, or several hashes have stats."""
        if not stored.is_split_over_hashes:
            with suppress(ResponseTooOld):
                return add_responses(stored.stats, responses)
        logger.info("made again from all responses", extra={"person": stored.home})
        return fold_responses([*self._counted_responses(stored, now), *responses])

    def _counted_responses(self, stored: StoredStats, now: datetime) -> list[Response]:
        """Return the person's counted responses; raises StatsBusy if the index may lack one of them yet."""
        if stored.updated_at > stamp(now - INDEX_LAG):
            raise StatsBusy(stored.home)
        items = self.responses.of_person(stored.hashes)
        return [from_item(decode_item(item)) for item in items if COUNTED in item]


def _response_of(record: Record) -> Response:
    return from_item(decode_item(record["dynamodb"]["NewImage"]))


@bootstrap(AnswersSettings)
def _parts(config: AnswersSettings, client: ClientOf) -> AnswerCounter:
    dynamodb = client("dynamodb")
    stats = UserStatsStore(dynamodb, config.user_stats_table, config.stats_shards)
    return AnswerCounter(stats, ResponseStore(dynamodb, config.responses_table))


@stream_consumer("answers", logger)
def handler(records: list[Record], now: datetime) -> BatchResult:
    """Lambda entry: a batch of Responses' stream."""
    return _parts().apply([record for record in records if record["eventName"] == "INSERT"], now)
