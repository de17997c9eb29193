"""A stand-in for the RDS Data API: its HTTP protocol, with a real PostgreSQL executing the statements.

Requests are checked against botocore's own model of the service. As on Aurora, a call carries one statement,
values have the types that the service gives them (text is varchar: it becomes nothing else without a cast), no
session is kept, an error ends its transaction, and results have limits.
"""

import itertools
import re
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any

import botocore.session
import psycopg
from botocore.validate import ParamValidator

from tests.support.rds_data_values import Refused, bound, failure, records

MODEL = botocore.session.get_session().get_service_model("rds-data")
CLUSTER = "arn:aws:rds:eu-west-1:123456789012:cluster:identity"
OWNER_SECRET, APP_SECRET = (
    f"arn:aws:secretsmanager:eu-west-1:123456789012:secret:{each}" for each in ("rds!cluster-1-x", "app-Ab1")
)
# A pool hands the next call another session: whatever a statement leaves in one is a mistake.
KEPT = re.compile(
    r"^\s*(SET(?!\s+(LOCAL|CONSTRAINTS)\b)|BEGIN|LISTEN|PREPARE|DECLARE)\b|pg_advisory_(un)?lock\(",
    re.IGNORECASE,
)
ASLEEP = "The Aurora DB instance arn:aws:rds:identity is resuming after being auto-paused. Please wait."


@dataclass
class Transaction:
    connection: Any
    who: tuple[str, str]
    lock: Any = field(default_factory=threading.Lock)


class RdsDataApi:
    """calls: the operations asked for. refusals: (code, message) that the next calls get, not being run.

    lost: operations whose next call is run, and its answer lost. secrets: user and password, by ARN.
    """

    def __init__(self, port: int, secrets: dict[str, tuple[str, str]]) -> None:
        self.port, self.secrets = port, secrets
        self.calls: list[str] = []
        self.sqls: list[str] = []
        self.refusals: list[tuple[str, str]] = []
        self.lost: list[str] = []
        self._free: dict[tuple[str, str], list[Any]] = {}
        self._transactions: dict[str, Transaction] = {}
        self._lock = threading.Lock()

    def sleep(self, calls: int) -> None:
        self.refusals += [("DatabaseResumingException", ASLEEP)] * calls

    def url(self, database: str, secret: str = APP_SECRET) -> str:
        return f"rds-data://{database}?cluster={CLUSTER}&secret={secret}"

    def answer(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            self.calls.append(operation)
            self.sqls += [request["sql"]] if "sql" in request else []
            if self.refusals:
                raise Refused(*self.refusals.pop(0))
        shape: Any = MODEL.operation_model(operation).input_shape
        report = ParamValidator().validate(request, shape)
        unknown = request.keys() - shape.members.keys()
        if report.has_errors() or unknown:
            raise Refused("ValidationException", f"{report.generate_report()} {unknown}")
        if request["resourceArn"] != CLUSTER:
            raise Refused("DatabaseNotFoundException", "DBCluster not found")
        if request["secretArn"] not in self.secrets:
            raise Refused("SecretsErrorException", "The secret provided wasn't found.")
        known: dict[str, Any] = {
            "BeginTransaction": self.begin,
            "ExecuteStatement": self.execute,
            "CommitTransaction": lambda each: self.end(each, "COMMIT"),
            "RollbackTransaction": lambda each: self.end(each, "ROLLBACK"),
        }
        answered: dict[str, Any] = known[operation](request)
        return answered

    def begin(self, request: dict[str, Any]) -> dict[str, Any]:
        who = (request["secretArn"], request["database"])
        connection = self._take(who)
        self._run(connection, "BEGIN")
        name = str(uuid.uuid4())
        self._transactions[name] = Transaction(connection, who)
        return {"transactionId": name}

    def end(self, request: dict[str, Any], how: str) -> dict[str, Any]:
        found = self._transactions.pop(request["transactionId"], None)
        if found is None:
            raise Refused(
                "TransactionNotFoundException", f"Transaction {request['transactionId']} is not found"
            )
        assert found.who[0] == request["secretArn"]
        try:
            self._run(found.connection, how)
        finally:
            self._give_back(found.who, found.connection)
        return {"transactionStatus": "Transaction Committed" if how == "COMMIT" else "Rollback Complete"}

    def execute(self, request: dict[str, Any]) -> dict[str, Any]:
        if len(request["sql"]) > 65536:
            raise Refused("ValidationException", "Member must have length less than or equal to 65536")
        if KEPT.search(request["sql"]):
            raise Refused("ValidationException", "the stand-in keeps no session: " + request["sql"])
        sql, values = bound(request["sql"], request.get("parameters", []))
        who = (request["secretArn"], request["database"])
        if "transactionId" not in request:
            connection = self._take(who)
            try:
                return records(self._run(connection, sql, values), request)
            finally:
                self._give_back(who, connection)
        name = request["transactionId"]
        found = self._transactions.get(name)
        if found is None:
            raise Refused("TransactionNotFoundException", f"Transaction {name} is not found")
        assert found.who == who, "the transaction is another user's"
        if not found.lock.acquire(blocking=False):
            raise Refused("DatabaseErrorException", "Transaction is still running a query")
        try:
            return records(self._run(found.connection, sql, values), request)
        except Refused:
            with_rollback = self._transactions.pop(name)
            self._run(with_rollback.connection, "ROLLBACK", must=False)
            self._give_back(who, with_rollback.connection)
            raise
        finally:
            found.lock.release()

    def _run(self, connection: Any, sql: str, values: Any = ((), ()), must: bool = True) -> Any:
        result = connection.pgconn.exec_params(sql.encode(), *values)
        if must and (refused := failure(result, connection)):
            raise refused
        return result

    def _take(self, who: tuple[str, str]) -> Any:
        with self._lock:
            free = self._free.setdefault(who, [])
            while free:
                if not (connection := free.pop()).closed:
                    return connection
        user, password = self.secrets[who[0]]
        try:
            return psycopg.connect(
                host="127.0.0.1", port=self.port, user=user, password=password, dbname=who[1], autocommit=True
            )
        except psycopg.OperationalError as error:
            state = "28P01" if "password authentication" in str(error) else "08001"
            raise Refused("DatabaseErrorException", f"FATAL: {error}; SQLState: {state}") from None

    def _give_back(self, who: tuple[str, str], connection: Any) -> None:
        status = connection.pgconn.transaction_status
        with self._lock:
            if status == psycopg.pq.TransactionStatus.IDLE:
                self._free[who].append(connection)
                return
            connection.close()
            if status == psycopg.pq.TransactionStatus.UNKNOWN:  # lost; most likely those that wait are, too
                while self._free[who]:
                    self._free[who].pop().close()

    def close(self) -> None:
        open_ones = [each.connection for each in self._transactions.values()]
        for each in itertools.chain(open_ones, *self._free.values()):
            each.close()
