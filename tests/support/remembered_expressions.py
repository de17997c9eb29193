"""The emulator reads and checks an expression anew for each item that it is held against: here once."""

import contextlib
from functools import lru_cache
from typing import Any

KEPT = 4096


def remember_expressions(dynamodb: Any) -> None:
    """Let the emulator's module for DynamoDB keep what it has read; for good."""
    tokens, is_wrong = lru_cache(KEPT)(dynamodb._tokenize), lru_cache(KEPT)(dynamodb._condition_syntax_error)
    dynamodb._tokenize = lambda expression: list(tokens(expression))
    dynamodb._condition_syntax_error = is_wrong
    dynamodb._number_size_bytes = lru_cache(KEPT)(dynamodb._number_size_bytes)
    evaluate = dynamodb._evaluate_condition

    @lru_cache(KEPT)
    def plain_tokens(expression: str, slot: str) -> tuple[tuple[str, str], ...] | None:
        """The tokens, if nothing is wrong with them and no bounds have to be looked at."""
        found = tuple(tokens(expression))
        wrong = dynamodb._check_redundant_parens(found, slot) or dynamodb._check_reserved_keyword_usage(found)
        has_bounds = any(text.upper() == "BETWEEN" for _, text in found)
        return None if wrong or has_bounds or is_wrong(expression, slot) else found

    def held_against(
        expression: str, item: Any, values: Any, names: Any, slot: str = "ConditionExpression"
    ) -> Any:
        found = plain_tokens(expression, slot) if expression and expression.strip() else None
        if found is not None:
            with contextlib.suppress(Exception):  # the emulator's own function tells what is wrong
                return dynamodb._ExprEval(found, item, values, names).evaluate()
        return evaluate(expression, item, values, names, slot)

    dynamodb._evaluate_condition = held_against
