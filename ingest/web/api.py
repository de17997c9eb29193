"""A function behind the HTTP API: its routes, and how it reads bodies, and writes answers and errors.

Each ..._api.py makes one Api. `Api.route` declares a route together with the function that answers it. The
OpenAPI document and template.yaml follow from the declaration. For each request, Powertools' router runs
check_allowance, then refuse_erased where a function uses it, then the function of the route.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from decimal import Decimal
from functools import wraps
from inspect import cleandoc
from typing import Any
from urllib.parse import quote, unquote

from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger
from adapters.platform.aws import Unavailable
from adapters.platform.limits import SharedCounters, network_of
from adapters.platform.tables import Unprocessed
from ingest.web.bodies import BODY_BYTES_MAX, read_plain_body
from ingest.web.caller import DETAILS_MAX, ApiError, Caller, caller_of, invalid_fields
from ingest.web.json_schema import ANY, Schema
from ingest.web.rate_limit import CHEAP_STEP, RateLimit
from ingest.web.routes import Parameter, Route, in_path
from ingest.web.validate import body_problems, first_problem
from rules.json_values import NoJson, Pairs, cut_text, read_json
from rules.parts import Part

# A quarter of the 200 a second that the gateway lets through to hooks (infra/app/api.yaml).
REQUESTS_PER_MINUTE_OF_ADDRESS = 3_000
# A part of a path may arrive encoded twice: an HTTP API decodes all but %25 before it looks for the route. So
# a slash within an id is sent as %252F.
DECODINGS_MAX = 3
# The declared body of the request at hand. A ContextVar, because threads share Powertools' own context.
_BODY: ContextVar[Any] = ContextVar("body")
# The parameters of paths that are a user's id.
PEOPLE = ("user_id", "agent_id")
NO_ROUTE = "not_found_handler"  # Powertools' own, where no route fits
ERASED_REASON = "was erased; an admin may lift that for somebody who comes anew"
# Of each text in a refusal: a function may answer 6 MB, and escapes make a request's words six times as long.
REFUSAL_CHARACTERS_MAX = 500
# Answers are about people and hold what people wrote. A browser must not keep them or show them as a page.
SECURITY_HEADERS = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


def decode_path_values(
    app: APIGatewayHttpResolver, route: Callable[[APIGatewayHttpResolver], Any]
) -> Response[Any]:
    """Decode what a route gets of the path, as a middleware of a router does: auth0%7Cx is auth0|x."""
    values = app.context.get("_route_args", {})
    app.context["_route_args"] = {name: unquote(value) for name, value in values.items()}
    response: Response[Any] = route(app)
    return response


@dataclass(frozen=True, slots=True)
class Allowance:
    """Read by every function of an HTTP API (ingest.web.api): how many requests a caller may make."""

    limits_table: str
    reads_per_minute: int  # of one caller


@bootstrap(Allowance)
def _parts(config: Allowance, client: ClientOf) -> tuple[RateLimit, RateLimit]:
    """Return the limits of callers' reads, and of addresses."""
    counters = SharedCounters(lambda: client("dynamodb"), config.limits_table)
    reads = RateLimit(counters, "reads", config.reads_per_minute, step=CHEAP_STEP)
    return reads, RateLimit(counters, "requests", REQUESTS_PER_MINUTE_OF_ADDRESS, step=CHEAP_STEP)


def check_allowance(
    app: APIGatewayHttpResolver, route: Callable[[APIGatewayHttpResolver], Any]
) -> Response[Any]:
    """Count a request, as a middleware of a router does; raises 429.

    A read with a token counts for the caller; admins are not counted. Writes have limits of their own kind.
    A request without a token counts for its address. The gateway says which it is: a sender could write any
    address into a header.
    """
    event: dict[str, Any] = app.current_event.raw_event
    reads, requests = _parts()
    context = event["requestContext"]
    if not context.get("authorizer"):
        address = network_of(context["http"].get("sourceIp", ""))
        requests.check(hashlib.sha256(address.encode()).hexdigest()[:32], 1, clock.now())
    elif context["http"]["method"] == "GET" and not (caller := caller_of(event)).is_admin:
        reads.check(caller.user_id, 1, clock.now())
    response: Response[Any] = route(app)
    return response


# What answers a route returns: a body, which is sent with the declared status, or a whole response.
Answer = Mapping[str, Any] | Response[str]
Handler = Callable[..., Answer]


class Api:
    """A function behind the HTTP API, with its routes.

    name: as in Route.api. path: the schema of each parameter of a path, by its name. unavailable: further
    exceptions of its stores that are answered with 503. Those of AWS are answered so anyway. part: as in
    Route, of all its routes.
    """

    def __init__(
        self,
        name: str,
        path: Mapping[str, Schema] | None = None,
        *unavailable: type[Exception],
        part: Part | None = None,
    ) -> None:
        self.name, self.path, self.part = name, path or {}, part
        self.routes: list[Route] = []
        self.logger = Logger(service=re.sub("(?<=[a-z])(?=[A-Z])", "-", name).lower())
        self._router = APIGatewayHttpResolver()
        self.use, self.exception_handler = self._router.use, self._router.exception_handler
        self.use([decode_path_values, check_allowance])
        self.exception_handler(ApiError)(error_response)
        self.exception_handler([*Unavailable, Unprocessed, *unavailable])(self._unavailable)
        self._router.not_found(_not_found)
        # Lambda's entry: an HTTP API request, payload format 2.0.
        self.handler = self.logger.inject_lambda_context(self.resolve)

    def route(  # noqa: PLR0913 (all that is said of a route)
        self,
        key: str,
        query: Sequence[Parameter] = (),
        *,
        body: Schema | None = None,
        status: int = 200,
        answer: Schema = ANY,
        is_open: bool = False,
        may_repeat: bool = False,
        waited: Schema | None = None,
        more: str = "",
        part: Part | None = None,
    ) -> Callable[[Handler], Handler]:
        """Declare a route. It goes before the function that answers it.

        The function's docstring is what the OpenAPI document says: first the summary, then the description;
        `more` goes on with it where routes share a text. The function's name is the route's in the template:
        get_user has GetUserRoute there. Everything else is as in Route.
        """
        method, path = key.split(" ")

        def declare(function: Handler) -> Handler:
            summary, _, description = cleandoc(function.__doc__ or "").partition("\n\n")
            path_parameters = [in_path(name, self.path[name]) for name in re.findall(r"{(\w+)}", path)]
            route = Route(
                "".join(map(str.capitalize, function.__name__.split("_"))),
                self.name,
                key,
                summary.removesuffix("."),
                [*path_parameters, *query],
                body,
                status,
                answer,
                is_open=is_open,
                may_repeat=may_repeat,
                waited=waited,
                description=" ".join(filter(None, (*description.split("\n"), more))),
                part=part or self.part,
            )

            @wraps(function)
            def respond(**path_values: str) -> Response[str]:
                _BODY.set(body)
                result = function(**path_values)
                return result if isinstance(result, Response) else json_response(status, result)

            self.routes.append(route)
            self._router.route(path.replace("{", "<").replace("}", ">"), [method])(respond)
            return function

        return declare

    def resolve(self, event: dict[str, Any], context: Any) -> dict[str, Any]:
        """Return the answer to a request. HEAD is answered as GET, without the body."""
        path = "/".join(map(_encode_part, event.get("rawPath", "").split("/")))
        asked, is_head = event["requestContext"], event["requestContext"]["http"]["method"] == "HEAD"
        if is_head:
            asked = {**asked, "http": {**asked["http"], "method": "GET"}}
        answer = self._router.resolve({**event, "rawPath": path, "requestContext": asked}, context)
        return {**answer, "body": "", "isBase64Encoded": False} if is_head else answer

    @property
    def event(self) -> dict[str, Any]:
        """The request at hand, payload format 2.0."""
        return self._router.current_event.raw_event

    @property
    def query(self) -> Mapping[str, str]:
        """The query's parameters. API Gateway joins the values of one that is given twice with commas."""
        return self._router.current_event.query_string_parameters or {}

    def caller(self) -> Caller:
        """Return who asks; raises 401."""
        return caller_of(self.event)

    def admin(self) -> Caller:
        """Return who asks; raises 403 for anybody but an admin."""
        caller = self.caller()
        caller.check_admin()
        return caller

    def check_path(self, name: str, value: str) -> None:
        """Raise 400 for a parameter of the path that is not as declared."""
        if problem := first_problem(self.path[name], value):
            raise ApiError(400, "invalid_parameter", f"{name} {problem[1]}")

    def body(self, batch: str = "", pairs: Pairs | None = None) -> dict[str, Any]:
        """Return the body if the route's schema accepts it; {} if the request has no body and needs none.

        batch, pairs: see json_body.
        """
        schema = _BODY.get()
        if not schema["required"] and not self.event.get("body"):
            return {}
        return json_body(self.event, schema, batch, pairs)

    def _unavailable(self, error: Exception) -> Response[str]:
        self.logger.error("a store is unavailable", exc_info=error)
        return error_response(ApiError(503, "unavailable", "try again", headers={"Retry-After": "1"}))


def _encode_part(part: str) -> str:
    """Return a part of a path, however often it is encoded, encoded once. No id has a %."""
    for _ in range(DECODINGS_MAX):
        part = unquote(part)
    return quote(part, safe="")


def _not_found(_: Exception) -> Response[str]:
    return error_response(ApiError(404, "not_found", "there is no such route"))


def refuse_erased(app: Api, is_erased: Callable[[str], bool], *open_to_erased: str) -> None:
    """Let a function answer 410 wherever an erased user asks, or is asked about (docs/rules.md, rule 10).

    A route concerns the users whom its path names. If the path names nobody, it concerns the caller. Only a
    caller who may reach a user learns that the user was erased. All others get the answer that they would get
    if the user were not erased, which is 403.

    is_erased: of a user id. open_to_erased: names of the functions whose routes erased users, too, may be
    asked about.
    """

    def check(app: APIGatewayHttpResolver, route: Callable[[APIGatewayHttpResolver], Any]) -> Response[Any]:
        if app.context["_route"].func.__name__ not in (NO_ROUTE, *open_to_erased):
            caller, path_values = caller_of(app.current_event.raw_event), app.context["_route_args"]
            users = [path_values[name] for name in PEOPLE if name in path_values] or [caller.user_id]
            if any(is_erased(user) for user in users if caller.may_reach(user)):
                raise ApiError(410, "erased", f"the user {ERASED_REASON}")
        response: Response[Any] = route(app)
        return response

    app.use([check])


def json_body(
    event: Mapping[str, Any],
    schema: Schema,
    batch: str = "",
    pairs: Pairs | None = None,
    bytes_max: int = BODY_BYTES_MAX,
) -> dict[str, Any]:
    """Return the body of a request if the schema accepts it; raises 422 with all faulty fields, and as
    read_plain_body.

    batch: a field of which the caller checks each part by itself, with body_problems.
    pairs: as of read_json.
    """
    body = json_of(read_plain_body(event, bytes_max), pairs)
    outer = schema
    if batch:  # the caller checks its parts
        any_batch = {name: value for name, value in schema["properties"][batch].items() if name != "items"}
        outer = {**schema, "properties": {**schema["properties"], batch: any_batch}}
    if problems := body_problems(outer, body, apart=batch):
        raise invalid_fields(problems)
    # JSON Schema accepts 5.0 as an integer. The tables need the int 5.
    whole = {name for name, each in schema["properties"].items() if each.get("type") == "integer"}
    return {name: int(value) if name in whole else value for name, value in body.items()}


def json_of(data: bytes, pairs: Pairs | None = None) -> Any:
    """Read the JSON of a body; raises 400. No schema has checked it yet."""
    try:
        return read_json(data, pairs)
    except NoJson as error:
        raise ApiError(400, "invalid_json", f"the body is not JSON: {error}"[:300]) from None


def json_response(status: int, body: Any, headers: Mapping[str, str] | None = None) -> Response[str]:
    """Return a JSON response."""
    text = json.dumps(body, separators=(",", ":"))
    return Response(
        status, content_type="application/json", body=text, headers={**SECURITY_HEADERS, **(headers or {})}
    )


def error_response(error: ApiError) -> Response[str]:
    """Return an error as the OpenAPI document describes it, short enough for a function's answer."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.details is not None:
        body["details"] = error.details
    return json_response(error.status, {"error": shorten_details(body)}, error.headers)


def shorten_details(value: Any) -> Any:
    """Return what is wrong with a request: the first DETAILS_MAX of each list, each long text's beginning."""
    if isinstance(value, Mapping):
        return {name: shorten_details(each) for name, each in value.items()}
    if isinstance(value, list):
        return [shorten_details(each) for each in value[:DETAILS_MAX]]
    return cut_text(value, REFUSAL_CHARACTERS_MAX) if isinstance(value, str) else value


def exact_json(value: Any) -> str:
    """Return JSON, as compact as that of `json_response`. Decimals become numbers.

    Raises ValueError for a number that is not finite.
    """
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{value} is no JSON number")
        return format(value, "f")
    if isinstance(value, Mapping):
        return "{" + ",".join(f"{json.dumps(name)}:{exact_json(each)}" for name, each in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(exact_json, value)) + "]"
    return json.dumps(value, allow_nan=False)
