"""Who is calling, by the groups that the token names, and the errors for what the caller may not do.

In this order: the groups; errors; what a caller may do; how the groups are read from a token.
"""

import base64
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rules.user_ids import user_id_problem

ADMIN = "streakline/admin"
# Integrations send one organization's events of leads, and read and mend what is known of its leads. The
# group's name ends in the organization; without one it permits nothing. A caller may be in several.
LEADS = "streakline/leads/"
# Agents ask questions, read their answers, and relay the answers of people without an account.
AGENTS = "streakline/agents"
# Servers of the app send events of any user, late ones too, and those that a user may not declare. They read
# profiles, and nothing else of users.
PRODUCERS = "streakline/producers"
# Those who hand out rewards undo a redemption that they cannot fulfil. A user who could undo it alone would
# keep reward and points.
FULFILMENT = "streakline/fulfilment"
# Who ships one brand's rewards says what became of them. The group's name ends in the brand.
BRAND = "streakline/fulfilment/"
# Who sees and answers questions for an audience. The group's name ends in the tag. A caller may have several.
AUDIENCE = "streakline/audience/"

COGNITO_GROUPS = "cognito:groups"
# Claims of what a client has asked for. Where an issuer lets clients ask for any scope, it would be anybody.
SCOPES = frozenset({"scope", "scp"})
GROUP_PREFIX = "streakline/"
# A header that is there twice arrives with a comma: which of the two was verified, nobody knows.
ONE_TOKEN = re.compile(r"(?:Bearer +)?[\w-]+\.([\w-]+)\.[\w-]*", re.ASCII | re.IGNORECASE)
# A refusal names this many faults of a request: as many as a request may have events.
DETAILS_MAX = 100


class ApiError(Exception):
    """An answer other than success: HTTP status, code, message, and details for the caller.

    A text in it may be as long as the request made it, and a list too: `error_response` shortens both.
    """

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        details: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.details = status, code, message, details
        self.headers = dict(headers or {})


def invalid_field(field: str, reason: str) -> ApiError:
    """Return the refusal of a body for one of its fields."""
    return invalid_fields([(field, reason)])


def invalid_fields(faults: Sequence[tuple[str, str]]) -> ApiError:
    """Return the refusal of a body for several faults: (field, reason). It names the first 100.

    If there is more than one, its message begins with their number.
    """
    listed = faults[:DETAILS_MAX]
    number = f"{len(faults)} faults: " if len(faults) > 1 else ""
    message = number + "; ".join(f"{field} {reason}" for field, reason in listed)
    details = [{"field": field, "reason": reason} for field, reason in listed]
    return ApiError(422, "invalid_field", message, details)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is calling, according to the token, which the gateway has verified. A check_... raises 403."""

    user_id: str
    is_admin: bool
    organizations: frozenset[str] = frozenset()  # whose leads the caller reaches; an admin reaches all
    is_agent: bool = False
    is_producer: bool = False
    is_fulfilment: bool = False
    tags: frozenset[str] = frozenset()  # the audiences that the caller belongs to
    brands: frozenset[str] = frozenset()  # those whose rewards the caller ships

    @property
    def may_name_points(self) -> bool:
        """Whether the caller is trusted to say how many points somebody spends."""
        return self.is_admin or self.is_fulfilment

    @property
    def is_server(self) -> bool:
        """Whether the caller is believed what only a server can know."""
        return self.is_admin or self.is_producer

    def may_reach(self, user_id: str) -> bool:
        """Whether there is any route on which the caller reaches something of this user's."""
        return user_id == self.user_id or self.may_name_points or bool(self.brands)

    def check(self, user_id: str) -> None:
        """Raise 403 unless the caller may reach this user's data."""
        if not self.is_admin and user_id != self.user_id:
            raise ApiError(403, "forbidden", "this token reaches only its own user's data")

    def check_fulfilment(self, brand: str = "") -> None:
        """Raise 403 unless the caller may undo redemptions; or report what became of a brand's rewards."""
        wanted = f"{FULFILMENT}/{brand}, {FULFILMENT} or {ADMIN}" if brand else f"{FULFILMENT} or {ADMIN}"
        _refuse_unless(self.may_name_points or brand in self.brands, wanted)

    def check_leads(self) -> None:
        """Raise 403 unless the caller reaches the leads of some organization."""
        _refuse_unless(self.is_admin or bool(self.organizations), f"{LEADS}{{organization}} or {ADMIN}")

    def reaches(self, organization_id: str) -> bool:
        """Whether the caller reaches the leads of this organization."""
        return self.is_admin or organization_id in self.organizations

    def check_organization(self, organization_id: str) -> None:
        """Raise 403 unless the caller may send events of this organization's leads."""
        _refuse_unless(self.reaches(organization_id), f"{LEADS}{organization_id} or {ADMIN}")

    def check_agent(self) -> None:
        """Raise 403 unless the caller may ask questions."""
        _refuse_unless(self.is_admin or self.is_agent, f"{AGENTS} or {ADMIN}")

    def check_server(self) -> None:
        """Raise 403 unless the caller is a server or an admin."""
        _refuse_unless(self.is_server, f"{PRODUCERS} or {ADMIN}")

    def check_admin(self) -> None:
        """Raise 403 unless the caller is an admin."""
        _refuse_unless(self.is_admin, ADMIN)


def _refuse_unless(is_allowed: bool, groups: str) -> None:
    if not is_allowed:
        raise ApiError(403, "forbidden", f"needs {groups}")


def caller_of(event: Mapping[str, Any]) -> Caller:
    """Return the caller that the verified claims of the authorizer name; raises 401 if there are none."""
    claims = event.get("requestContext", {}).get("authorizer", {}).get("jwt", {}).get("claims", {})
    if not claims.get("sub"):
        raise ApiError(401, "unauthorized", "a bearer token with a sub is needed")
    if problem := user_id_problem(str(claims["sub"])):
        raise ApiError(403, "forbidden", f"the token's sub is no user id: it {problem}")
    granted = _groups(event, claims)
    return Caller(
        user_id=str(claims["sub"]),
        is_admin=ADMIN in granted,
        organizations=_group_suffixes(LEADS, granted),
        is_agent=AGENTS in granted,
        is_producer=PRODUCERS in granted,
        is_fulfilment=FULFILMENT in granted,
        tags=_group_suffixes(AUDIENCE, granted),
        brands=_group_suffixes(BRAND, granted),
    )


def _group_suffixes(group: str, granted: set[str]) -> frozenset[str]:
    """Return what the names of groups end in that begin with this."""
    return frozenset(name.removeprefix(group) for name in granted if name.startswith(group)) - {""}


def groups_claim() -> str:
    """Return the name of the claim that holds groups: the parameter JwtGroupsClaim."""
    return os.environ.get("GROUPS_CLAIM") or COGNITO_GROUPS


def _groups(event: Mapping[str, Any], claims: Mapping[str, Any]) -> set[str]:
    """Return the groups that a token names, each whole. What a client may ask for itself is no group.

    The claim is a list, or a text with commas between the groups. The gateway has verified the token, but
    writes lists as texts: "[a b]" may be the groups a and b, or one with a blank in its name. So the claim is
    read from the token itself where the event has it.
    """
    name = groups_claim()
    if name in SCOPES:
        return set()
    is_in_token, groups = _claim(_token_claims(event, claims), name)
    if not is_in_token:
        groups = _list_again(claims.get(name))
    if isinstance(groups, str):
        groups = [group.strip(" ") for group in groups.split(",")]
    return {group for group in groups if isinstance(group, str)} if isinstance(groups, list) else set()


def _claim(claims: Mapping[str, Any], name: str) -> tuple[bool, Any]:
    """Return whether there is a claim of this name, and its value.

    A name is taken whole first, because it may be a URL. Else it may lead to an inner claim: at each dot, as
    `realm_access.roles` does.
    """
    if name in claims:
        return True, claims[name]
    for index, character in enumerate(name):
        if character == "." and isinstance(inner := claims.get(name[:index]), Mapping):
            is_there, value = _claim(inner, name[index + 1 :])
            if is_there:
                return True, value
    return False, None


def _token_claims(event: Mapping[str, Any], claims: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the claims of the verified token as sent; none if the event does not have that token."""
    headers = {name.lower(): str(value) for name, value in (event.get("headers") or {}).items()}
    token = ONE_TOKEN.fullmatch(headers.get("authorization", ""))
    if token is None:
        return {}
    payload = token[1]
    try:
        token_claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, RecursionError):
        return {}
    is_verified = isinstance(token_claims, dict) and str(token_claims.get("sub")) == str(claims["sub"])
    return token_claims if is_verified else {}


def _list_again(value: Any) -> Any:
    """Return a claim that a gateway has written; a list that became a text is a list again.

    Its groups are several only if each has Streakline's prefix: a group of another system may have a blank.
    """
    if not isinstance(value, str) or value[:1] + value[-1:] != "[]":
        return value
    text = value[1:-1]
    groups = text.split(" ")
    return groups if all(group.startswith(GROUP_PREFIX) for group in groups) else [text]
