"""Writes days and profiles of several accounts whose ledger entries are written, many in a request.

Each write keeps its own condition. By statements, 25 are in a request, and one that fails fails alone. By
transactions, all of a request fail together; they cost double units, and are for the emulator, whose streams
lack what a statement writes. Whoever is not finished here is looked at alone, as if its writer had died after
the ledger's transaction.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from adapters.engagement.account_items import DAY_NAMES, PROFILE_NAMES
from adapters.engagement.account_store import AccountStore, ProjectionMoved
from adapters.engagement.joint.statements import Put, TableNames, refused, statement_of
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.batches import WRITE_MAX, chunks
from rules.engagement.account_state import Decision

logger = Logger(service="engagement")
DAYS = TableNames(("user_id", "activity_date"), DAY_NAMES)
PROFILES = TableNames(("user_id",), PROFILE_NAMES)
ACTIONS_MAX = 50  # of at most 100: a transaction that meets another writer is lost for all of its users
MOVED = "ConditionalCheckFailed", "DuplicateItem"  # another writer was first: that is common
Puts = Iterable[tuple[str, Put]]  # each with its user


class JointProjections:
    """The days and profiles of several accounts."""

    def __init__(self, dynamodb: Any, accounts: AccountStore) -> None:
        self._dynamodb, self._accounts = dynamodb, accounts

    def commit(self, decisions: Mapping[str, Decision]) -> set[str]:
        """Write the days, then the profiles, of decisions by user; returns the users who are finished."""
        left = decisions.keys() - self._write(self._days(decisions), DAYS)
        alone: dict[str, Decision] = {}
        puts: list[tuple[str, Put]] = []
        for user in sorted(left):
            decision = decisions[user]
            if decision.profile != decision.before.profile:
                own = self._profile_puts(decision)
                puts += [(user, own[0])] if len(own) == 1 else []
                alone |= {} if len(own) == 1 else {user: decision}
        return left - self._write(puts, PROFILES) - self._moved(alone)

    def _days(self, decisions: Mapping[str, Decision]) -> Iterator[tuple[str, Put]]:
        for user, decision in decisions.items():
            for when, day in decision.days.items():
                yield user, self._accounts.day_put(decision.before.days.get(when), day)

    def _profile_puts(self, decision: Decision) -> list[dict[str, Any]]:
        """Return a profile's put; two with an archive, and none if that cannot be read now."""
        with suppress(*Unavailable):
            return self._accounts.profile_puts(decision.profile)
        return []

    def _moved(self, alone: Mapping[str, Decision]) -> set[str]:
        """Write profiles with their archives; returns whose were not written."""
        failed: set[str] = set()
        for user, decision in alone.items():
            try:
                self._accounts.put_profile(decision.profile)
            except (ProjectionMoved, *Unavailable):
                failed.add(user)
        return failed

    def _write(self, puts: Puts, names: TableNames) -> set[str]:
        """Carry out puts; returns the users of whom one has failed, or may have."""
        failed: set[str] = set()
        for chunk in chunks(puts, WRITE_MAX):
            told = [(user, statement_of(put, names)) for user, put in chunk]
            failed |= {user for user, statement in told if statement is None}
            asked = [(user, statement) for user, statement in told if statement]
            failed |= self._execute([user for user, _ in asked], [each for _, each in asked])
        return failed

    def _execute(self, users: list[str], statements: list[dict[str, Any]]) -> set[str]:
        if not statements:
            return set()
        try:
            answer = self._dynamodb.batch_execute_statement(Statements=statements)
            codes = refused(answer, statements)
        except Exception:  # whatever it is, each account alone meets it again, and tells of it
            logger.warning("projections not together", extra={"users": len(users)}, exc_info=True)
            return set(users)
        if odd := sorted({code for code in codes if code and code not in MOVED}):
            logger.warning("projections refused", extra={"codes": odd})
        return {user for user, code in zip(users, codes, strict=True) if code}


class TransactedProjections(JointProjections):
    """The same by transactions."""

    def _write(self, puts: Puts, _names: TableNames) -> set[str]:
        failed: set[str] = set()
        for chunk in chunks(puts, ACTIONS_MAX):
            users = {user for user, _ in chunk}
            try:
                self._dynamodb.transact_write_items(TransactItems=[{"Put": put} for _, put in chunk])
            except self._dynamodb.exceptions.TransactionCanceledException:
                failed |= users  # another writer was first
            except Exception:  # whatever it is, each account alone meets it again, and tells of it
                logger.warning("projections not together", extra={"users": len(users)}, exc_info=True)
                failed |= users
        return failed


WAYS = {"statements": JointProjections, "transactions": TransactedProjections, "none": None}


def of(way: str, dynamodb: Any, accounts: AccountStore) -> JointProjections | None:
    """Return what writes in one of the ways of WAYS. None: each day and each profile is a put of its own."""
    kind = WAYS[way]
    return kind(dynamodb, accounts) if kind else None
