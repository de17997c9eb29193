"""The settings of each Lambda function, read from the environment when they are first needed.

A function has one class of settings, beside its handler. adapters.bootstrap makes a handler's parts of them.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import fields, make_dataclass
from typing import Any, TypeVar

from rules.privacy.tombstones import SafeToLog

T = TypeVar("T")


class SettingsMissing(SafeToLog, RuntimeError):
    """Variables of the environment are missing or malformed. The text names each, with the reason."""


def variable_name(field_name: str) -> str:
    """Return the environment variable of a field."""
    return field_name.upper()


def table_setting(table: str) -> str:
    """Return the setting with a table's name: bp_events_table of the table BPEvents."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", table)
    return f"{words.lower()}_table"


def with_settings(kind: type[T], *more: Mapping[str, type]) -> type[T]:
    """Return a class of settings that has further ones, those of parts. more: type by name.

    kind: a frozen dataclass, whose name is `OwnXSettings`. The name of the class is `XSettings`.
    """
    fields_of_parts = [(name, of_type) for settings in more for name, of_type in settings.items()]
    return make_dataclass(kind.__name__.removeprefix("Own"), fields_of_parts, bases=(kind,), frozen=True)


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


def _flag(text: str) -> bool:
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return text == "true"


_READERS: dict[str, Any] = {"str": str, "int": int, "bool": _flag}
