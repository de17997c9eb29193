"""Where replayed events come from: CSV files of events or purchases, and git histories."""

import hashlib
import hmac
import re
import secrets
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from local.paths import LOCAL, write_secret
from local.row_files import RefusedRow, UnreadableFile, csv_columns, csv_rows
from rules.json_values import NoJson, read_json

T = TypeVar("T")
Body = dict[str, Any]
REQUIRED = ("user_id", "occurred_at", "idempotency_key")
OPTIONAL = ("timezone", "source")
# The columns of a file of purchases, and what their cells must be.
PURCHASE = {
    "customer_id": "a text",
    "date": "a date as YYYYMMDD",
    "quantity": "a whole number",
    "amount": "a decimal number",
}
PURCHASE_DATE = re.compile(r"\d{8}", re.ASCII)
# Python's own readers also take 1_000, digits of other scripts, and 1E+6, which a spreadsheet has rounded.
WHOLE, AMOUNT = re.compile(r"[+-]?\d{1,15}", re.ASCII), re.compile(r"[+-]?\d{1,15}(\.\d{1,15})?", re.ASCII)
DEFAULT_TYPE = "CONTRIBUTION"


class BadRow(ValueError):
    """A row that cannot become an event."""


def from_csv(path: Path) -> Iterator[Body]:
    """Yield a CSV file's events; raises BadRow with line and column.

    Columns: user_id, occurred_at, idempotency_key, and optionally event_type, timezone, source,
    properties (a JSON object).
    """
    for line, row in _rows(path, REQUIRED):
        yield _body(row, line)


def _rows(path: Path, columns: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a CSV file's rows, each after its line as `file:line`. Raises BadRow for a missing column."""
    try:
        names = csv_columns(path)
        if missing := [name for name in columns if name not in names]:
            known = ", ".join(names) or "nothing"
            raise BadRow(f"{path}: the header lacks {', '.join(missing)}: it has {known}"[:500])
        for row in csv_rows(path):
            if isinstance(row, RefusedRow):
                raise BadRow(f"{path}:{row.line}: {row.field} {row.reason}")
            yield f"{path}:{row.line}", row.values
    except UnreadableFile as error:
        raise BadRow(str(error)) from None


def _body(row: dict[str, Any], line: str) -> Body:
    for name in REQUIRED:
        if not row.get(name):
            raise BadRow(f"{line}: {name} is empty")
    body: Body = {name: row[name] for name in REQUIRED}
    body["event_type"] = row.get("event_type") or DEFAULT_TYPE
    body |= {name: row[name] for name in OPTIONAL if row.get(name)}
    if properties := row.get("properties"):
        try:
            # Values that JSON cannot hold are sent: the API refuses them by field, and takes the other rows.
            body["properties"] = read_json(properties)
        except NoJson as error:
            raise BadRow(f"{line}: properties is not JSON: {error}") from None
    return body


@dataclass(frozen=True, slots=True)
class Purchase:
    """A row of a file of purchases."""

    customer: str
    number: int  # 1 for the customer's first purchase in the file, and so on
    placed: datetime
    quantity: int
    amount: Decimal


def purchases(path: Path) -> Iterator[Purchase]:
    """Yield the rows of a CSV file: customer_id, date (YYYYMMDD), quantity, amount. Raises BadRow.

    The file has only dates, so a purchase happens at the beginning of its date in UTC. Equal rows are several
    purchases; their numbers tell them apart.
    """
    numbers: Counter[str] = Counter()  # of each customer's newest purchase
    for line, row in _rows(path, PURCHASE):
        customer = _cell(row, "customer_id", line, str)
        amount = _cell(row, "amount", line, lambda text: Decimal(_fitting(AMOUNT, text)))
        day = _cell(row, "date", line, lambda text: _day(_fitting(PURCHASE_DATE, text)))
        quantity = _cell(row, "quantity", line, lambda text: int(_fitting(WHOLE, text)))
        numbers[customer] += 1
        yield Purchase(customer, numbers[customer], day, quantity, amount)


def _fitting(pattern: "re.Pattern[str]", text: str) -> str:
    """Return a cell's text without blanks around it; raises ValueError if it is not of a pattern."""
    if not pattern.fullmatch(text.strip()):
        raise ValueError(text)
    return text.strip()


def _day(text: str) -> datetime:
    return datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC)


def _cell(row: dict[str, Any], name: str, line: str, read: Callable[[str], T]) -> T:
    """Read a cell of a purchase; raises BadRow, which names the column."""
    text = row.get(name)
    if not text:
        raise BadRow(f"{line}: {name} is empty")
    try:
        return read(text)
    except (ArithmeticError, ValueError):
        raise BadRow(f"{line}: {name} is not {PURCHASE[name]}: {text[:40]}") from None


def from_purchases(path: Path) -> Iterator[Body]:
    """Yield an engagement event for each purchase of a CSV file; raises BadRow."""
    for purchase in purchases(path):
        yield {
            "user_id": f"customer-{purchase.customer}",
            "occurred_at": purchase.placed.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "idempotency_key": f"purchase-{purchase.customer}-{purchase.number}",
            "event_type": "PURCHASE_COMPLETED",
            "source": "shop",
            "properties": {"amount": str(purchase.amount), "quantity": purchase.quantity},
        }


def from_git(repository: Path) -> Iterator[Body]:
    """Yield one contribution for each commit, by its author, in the author's own UTC offset.

    Authors are pseudonymised with a key that never leaves this machine.
    """
    command = ["git", "-C", str(repository), "log", "--all", "--format=%H%x09%aI%x09%ae"]
    log = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    if log.returncode:
        raise BadRow(f"{repository}: {log.stderr.strip()}")
    key = _pseudonym_key()
    for line in filter(None, log.stdout.split("\n")):
        commit, occurred_at, email = line.split("\t", 2)  # an address may have a tab
        yield {
            "user_id": hmac.new(key, email.lower().encode(), hashlib.sha256).hexdigest()[:16],
            "occurred_at": occurred_at,
            "idempotency_key": commit,
            "event_type": DEFAULT_TYPE,
            "source": "git",
        }


def _pseudonym_key() -> bytes:
    path = LOCAL / "pseudonym.key"
    if not path.exists():
        write_secret(path, secrets.token_bytes(32))
    return path.read_bytes()
