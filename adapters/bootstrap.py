"""How a handler gets its parts: of its settings and of clients of AWS, once a process.

    @bootstrap(RefreshSettings)
    def _parts(config: RefreshSettings, client: ClientOf) -> RefreshParts:
        return RefreshParts(ActiveLeads(client("dynamodb"), config.feature_table), ...)

The handler calls `_parts()`. A test may give the clients, such as `{"dynamodb": faulty}.__getitem__`: to
`_parts.make`, or for a whole handler in place of `_parts.client`.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, Generic, TypeVar

from adapters.settings import read_settings

ClientOf = Callable[
    ..., Any
]  # the client of a service, "s3"; options as adapters.platform.aws.client has them
C = TypeVar("C")  # the class of settings
P = TypeVar("P")  # the parts


def process_client(service: str, **options: int) -> Any:
    """Return the process's client of a service. That of DynamoDB writes only while its region is the writer
    (adapters.platform.fence).
    """
    # Here, because the page asks no service of AWS: it starts without botocore.
    from adapters.platform.aws import client  # noqa: PLC0415 (see above)
    from adapters.platform.fence import fence_writer  # noqa: PLC0415 (see above)

    made = client(service, **options)
    return fence_writer(made) if service == "dynamodb" else made


class Bootstrap(Generic[C, P]):
    """Makes the parts of a handler. client: what gives it clients."""

    def __init__(self, settings_class: type[C], make: Callable[[C, ClientOf], P]) -> None:
        self.settings_class, self.make = settings_class, make
        self.client: ClientOf = process_client
        self._once = cache(self.build)

    def __call__(self) -> P:
        """Return the process's parts. Raises SettingsMissing, which names the variables."""
        return self._once()

    def build(self) -> P:
        """Return new parts, of the environment as it is now. Raises as a call."""
        return self.make(read_settings(self.settings_class), self.client)

    def cache_clear(self) -> None:
        """Forget the parts, as the end of a process does."""
        self._once.cache_clear()


def bootstrap(settings_class: type[C]) -> Callable[[Callable[[C, ClientOf], P]], Bootstrap[C, P]]:
    """Return a decorator for the function that makes a handler's parts of its settings and of clients."""
    return partial(Bootstrap, settings_class)
