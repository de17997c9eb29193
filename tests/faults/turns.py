"""Who takes the next step of a simulation, and which calls to DynamoDB fail: a seed decides both."""

import random
from collections.abc import Callable
from typing import Any

import greenlet
from aws_lambda_powertools.event_handler.api_gateway import BaseRouter
from botocore.exceptions import ClientError, EndpointConnectionError

import ingest.engagement.events_api
import ingest.engagement.users_api

FAULTS_MAX = 14
ROUTERS = [api.app._router for api in (ingest.engagement.events_api, ingest.engagement.users_api)]


class Killed(BaseException):
    """The process is dead: no handler may catch this."""


class Turns:
    """Hands the turn from actor to actor, as the seed says.

    Actors are greenlets: to change places takes a microsecond, where threads that wait for each other take fifty.
    """

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._main = greenlet.getcurrent()
        self._waiting: dict[str, greenlet.greenlet] = {}

    def start(self, name: str, body: Callable[[], None]) -> None:
        def run() -> None:
            try:
                body()
            finally:
                del self._waiting[name]

        self._waiting[name] = greenlet.greenlet(run, self._main)

    def pause(self) -> None:
        """Give the turn away; called by actors.

        A process answers one request at a time, and its router keeps that request in globals. Here several
        processes share these, so each finds its own again.
        """
        names = [name for name in ("current_event", "lambda_context") if hasattr(BaseRouter, name)]
        kept = {name: getattr(BaseRouter, name) for name in names}
        contexts = [(router, dict(router.context)) for router in ROUTERS]
        self._main.switch()
        for name, value in kept.items():
            setattr(BaseRouter, name, value)
        for router, values in contexts:
            router.context.clear()
            router.context.update(values)

    def step(self) -> bool:
        """Let one actor run to its next call; False when all are done."""
        if not self._waiting:
            return False
        self._waiting[self._chance.choice(sorted(self._waiting))].switch()
        return True

    @property
    def alive(self) -> int:
        return len(self._waiting)


def current() -> object:
    """Return whose turn it is: an actor, or else whoever lets the actors act."""
    return greenlet.getcurrent()


class Faults:
    """A DynamoDB client whose calls may fail, as the seed says."""

    def __init__(self, real: Any, turns: Turns, chance: random.Random) -> None:
        self._real, self._turns, self._chance = real, turns, chance
        self.left = FAULTS_MAX
        self.trace: list[str] = []
        self.exceptions = real.exceptions

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        real = getattr(self._real, operation)

        def call(**arguments: Any) -> Any:
            self._turns.pause()
            roll = self._chance.random()
            self.trace.append(f"{operation} {roll}")
            if self.left <= 0 or roll > 0.16:
                return real(**arguments)
            self.left -= 1
            if roll < 0.04:
                raise Killed
            if roll < 0.08:
                real(**arguments)
                raise Killed
            if roll < 0.12:
                error = {"Error": {"Code": "ProvisionedThroughputExceededException", "Message": "slow down"}}
                raise ClientError(error, operation)  # type: ignore[arg-type]
            real(**arguments)
            raise EndpointConnectionError(endpoint_url="the answer was lost")

        return call
