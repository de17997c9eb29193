"""Loggers that write nothing of a person (docs/rules.md, rule 10).

An exception quotes what it failed at: a date that is none, a document that is no JSON, a row that PostgreSQL
refuses. So of an exception a log has its type, what the service answered as a code, and the places in the
code with their lines; not its message. Somebody's id is written under a name that does not lead back to it.
What ends a handler is hidden alike, because Lambda writes it into the log, and into its answer.
"""

import traceback
from collections.abc import Callable, Mapping
from functools import wraps
from types import TracebackType
from typing import Any, TypeVar, cast

import aws_lambda_powertools
from aws_lambda_powertools.logging.formatter import LambdaPowertoolsFormatter

from rules.privacy.tombstones import SafeToLog, name_in_logs

Handler = TypeVar("Handler", bound=Callable[..., Any])
PERSONAL_KEYS = frozenset({"user_id", "caller", "author", "by"})
ExceptionInfo = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


def error_summary(error: BaseException) -> str:
    """Return what a log may say of an exception: its type, and the code that a service or system gave it."""
    name = type(error).__name__
    if isinstance(error, SafeToLog):
        return f"{name}: {error}"
    response = getattr(error, "response", None)
    if isinstance(response, Mapping) and (code := response.get("Error", {}).get("Code")):
        return f"{name}: {code} of {getattr(error, 'operation_name', '')}"
    code = getattr(error, "sqlstate", None) or (error.errno if isinstance(error, OSError) else None)
    return f"{name}: {code}" if code else name


def safe_traceback(error: BaseException) -> str:
    """Return the places in the code that an exception and its causes come from, the first cause first."""
    parts, ids = [], set[int]()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in ids:  # a chain of causes may be a ring
        ids.add(id(cause))
        parts.append("".join([*traceback.format_tb(cause.__traceback__), error_summary(cause)]))
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\nfrom which came:\n".join(reversed(parts))


class _Formatter(LambdaPowertoolsFormatter):
    """Lines of JSON, as Powertools writes them, without what an exception quotes."""

    def __init__(self) -> None:
        super().__init__(serialize_stacktrace=False)

    # Named by the standard library.
    def formatException(self, ei: ExceptionInfo) -> str:  # noqa: N802 (see above)
        return safe_traceback(ei[1]) if ei[1] else ""

    def serialize(self, log: Any) -> str:
        pseudonyms = {key: name_in_logs(str(value)) for key, value in log.items() if key in PERSONAL_KEYS}
        fields = {key: value for key, value in log.items() if key != "exception_notes"}
        return super().serialize(fields | pseudonyms)


class Logger(aws_lambda_powertools.Logger):
    """A logger of one service. What is logged as `extra` under a name of PERSONAL_KEYS is somebody's id."""

    def __init__(self, service: str, level: str | None = None) -> None:
        super().__init__(service=service, level=level, logger_formatter=_Formatter())

    def inject_lambda_context(self, lambda_handler: Handler) -> Handler:  # type: ignore[override]  # no options
        """Decorate a handler: each line says which call it is of, and what ends the call quotes nothing."""
        inner = super().inject_lambda_context(lambda_handler)

        @wraps(lambda_handler)
        def decorated(event: Any, context: Any) -> Any:
            try:
                return inner(event, context)
            except Exception as error:  # noqa: BLE001 (it is raised again, without its text)
                self.exception("ended")
                raise redact_error(error).with_traceback(error.__traceback__) from None

        return cast("Handler", decorated)


def redact_error(error: Exception) -> Exception:
    """Return an exception of the same type, also by name, whose text is what a log may say."""
    if isinstance(error, SafeToLog):
        return error
    text = error_summary(error)
    error_type = type(error)
    # A subclass of the same name, so that the text is replaced without calling the type's own __init__.
    texts = {"__str__": lambda _: text, "__repr__": lambda _: text}
    redacted_type = type(error_type.__name__, (error_type,), texts)
    # A group cannot be made without its exceptions, which are redacted, too.
    group = (text, list(map(redact_error, error.exceptions))) if isinstance(error, ExceptionGroup) else ()
    redacted: Exception = error_type.__new__(redacted_type, *group)
    return redacted
