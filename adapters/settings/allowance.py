"""What every function behind the API reads from its environment, to count requests."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Allowance:
    """ingest.web.allowance. reads_per_minute: of one caller."""

    limits_table: str
    reads_per_minute: int
