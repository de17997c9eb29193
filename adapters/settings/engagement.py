"""What the functions of engagement read from their environment."""

from dataclasses import dataclass

from adapters.settings.common import Allowance


@dataclass(frozen=True, slots=True)
class RulesApiSettings(Allowance):
    """ingest.book.rules_api."""

    rule_books_table: str
