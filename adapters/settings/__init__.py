"""The settings of each Lambda function, read from the environment when they are first needed.

A function has one class of settings, beside its handler. `wiring` makes a handler's parts of them.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar

from rules.privacy.tombstones import SafeToLog

if TYPE_CHECKING:
    from functools import _lru_cache_wrapper

T = TypeVar("T")
P = TypeVar("P")


class SettingsMissing(SafeToLog, RuntimeError):
    """Variables of the environment are missing or malformed. The text names each, with the reason."""


def variable_name(field_name: str) -> str:
    """Return the environment variable of a field."""
    return field_name.upper()


def read_settings(kind: type[T], environ: Mapping[str, str] = os.environ) -> T:
    """Return a settings class with the values of the environment; raises SettingsMissing.

    kind: a dataclass. A field has the value of the variable with its name in capitals.
    """
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for field in fields(kind):  # type: ignore[arg-type]  # T is a dataclass of this package
        text = environ.get(variable_name(field.name))
        try:
            if text is None:
                raise ValueError("is not set")
            type_name = field.type if isinstance(field.type, str) else field.type.__name__
            values[field.name] = _READERS[type_name](text)
        except ValueError as error:
            wrong.append(f"{variable_name(field.name)} {error}")
    if wrong:
        raise SettingsMissing("; ".join(wrong))
    return kind(**values)


def wiring(kind: type[T]) -> "Callable[[Callable[[T], P]], _lru_cache_wrapper[P]]":
    """Return a decorator for a function that makes a handler's parts of its settings. The decorated function
    takes no settings, and makes the parts once. `cache_clear()` forgets them, as the end of a process does.
    """

    def decorate(make: Callable[[T], P]) -> "_lru_cache_wrapper[P]":
        @cache
        @wraps(make)
        def parts() -> P:
            return make(read_settings(kind))

        return parts

    return decorate


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


_READERS: dict[str, Any] = {"str": str, "int": int, "bool": _flag}
