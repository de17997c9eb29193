"""An endpoint: an address of the customer's systems, and what it wants to hear of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rules.outgoing.notices import Notice, NoticeType

ENDPOINTS_MAX = 20  # of a deployment: each change of a profile is one transaction with all of them
BUS = "event-bus"  # the id of the EventBridge bus, which is an endpoint too
AT_LEAST = "at_least"
Filters = Mapping[str, Mapping[str, Sequence[Any]]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An endpoint of an organization (an app).

    It hears of all users, of the leads of its organization, and of the questions of the agents that it names.
    The bus hears of everything.

    types: of notifications; none: all of them. filters: by type, what fields of `data` must be: one of the
    values of each, `{"streak.extended": {"current_streak": [7, {"at_least": 30}]}}`. disabled: why nothing is
    sent, "" while it is; what happens meanwhile waits.
    """

    endpoint_id: str
    organization_id: str
    url: str
    types: frozenset[str] = frozenset()
    filters: Filters = field(default_factory=dict)
    description: str = ""
    created_at: str = ""
    disabled: str = ""
    agents: frozenset[str] = frozenset()

    def wants(self, notice: Notice) -> bool:
        """Whether it is to hear of something. A test is always wanted."""
        kind = notice.type.value
        if notice.type is NoticeType.TEST:
            return True
        if not self.may_want(notice.type) or not self._is_its_own(notice):
            return False
        asked = self.filters.get(kind, {})
        return all(_fits(values, notice.data.get(name)) for name, values in asked.items())

    def may_want(self, kind: NoticeType) -> bool:
        """Whether it has asked for a type."""
        return not self.types or kind.value in self.types

    def _is_its_own(self, notice: Notice) -> bool:
        if self.endpoint_id == BUS:
            return True
        if notice.type is NoticeType.LEAD_UPDATED:
            return bool(notice.data["organization_id"] == self.organization_id)
        return notice.type is not NoticeType.QUESTION_CLOSED or notice.data["agent_id"] in self.agents


def _fits(values: Sequence[Any], found: Any) -> bool:
    return any(_is_met(each, found) for each in values)


def _is_met(wanted: Any, found: Any) -> bool:
    if isinstance(wanted, Mapping):
        is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
        return is_number and found >= wanted[AT_LEAST]
    return bool(wanted == found) and isinstance(wanted, bool) == isinstance(found, bool)
