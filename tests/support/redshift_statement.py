"""A statement as the list of what Redshift refuses reads it, and an entry of that list."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import sqlglot
from sqlglot import TokenType, exp

from tests.support.redshift_words import (
    GUIDE,
)

# sqlglot has no grammar for these. They are short, and written by us.
UNPARSED = re.compile(
    r"LOCK [\w.]+|CREATE ROLE \w+|GRANT (USAGE|SELECT) ON (ALL TABLES IN )?SCHEMA [\w, ]+ TO ROLE \w+"
    r"|ALTER DEFAULT PRIVILEGES IN SCHEMA [\w, ]+ GRANT SELECT ON TABLES TO ROLE \w+"
)
LATE_BINDING = "WITH NO SCHEMA BINDING"


@dataclass(frozen=True)
class Statement:
    """One statement, read as far as a rule needs it."""

    text: str

    @cached_property
    def tokens(self) -> list[Any]:
        return sqlglot.tokenize(self.text, read="redshift")

    @cached_property
    def tree(self) -> Any:
        text = self.text.strip().rstrip(";")
        if UNPARSED.fullmatch(text):
            return exp.Select()
        return sqlglot.parse_one(text.removesuffix(LATE_BINDING), read="redshift")

    def all(self, *kinds: Any) -> Iterator[Any]:
        return iter(self.tree.find_all(*kinds))

    def words(self) -> Iterator[str]:
        """Words outside of quotes. sqlglot may write what it understands differently: Redshift gets the text."""
        quoted = (TokenType.STRING, TokenType.IDENTIFIER)
        return (each.text.lower() for each in self.tokens if each.token_type not in quoted)

    def calls(self) -> Iterator[str]:
        """Names before a parenthesis, and words that are functions without one."""
        for token, then in zip(self.tokens, [*self.tokens[1:], None], strict=True):
            bare = token.text.lower() in {"current_time", "current_timestamp", "localtime"}
            if bare or (then is not None and then.token_type is TokenType.L_PAREN):
                yield token.text.lower()


Find = Callable[[Statement], Iterator[str]]


@dataclass(frozen=True)
class Rule:
    name: str
    page: str
    find: Find
    planted: tuple[str, ...]


RULES: list[Rule] = []


def rule(name: str, page: str, *planted: str) -> Callable[[Find], Find]:
    def add(find: Find) -> Find:
        RULES.append(Rule(name, page if "/" in page else GUIDE + page, find, planted))
        return find

    return add
