"""A database of before organizations were kept apart, for the tests of its division."""

import json
import shutil
from pathlib import Path
from typing import Any

import psycopg

from adapters.postgresql.databases import database
from adapters.postgresql.migrations import FOLDER, migrate
from local.cloud import embedded_postgres
from tests.support.identity_server import Registry, Server

BEFORE = "0009"


class Old:
    """A database as it was before organizations were kept apart, and who writes to it as the code of then did."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.url = server, server.empty_database()
        self.name = self.url.rpartition("/")[2]
        shutil.copytree(FOLDER, folder)
        for path in folder.glob("*.sql"):
            if path.name >= BEFORE:
                path.unlink()
        self.migrate(folder)
        self.owner = psycopg.connect(self.url, autocommit=True)
        self.at = 0

    def migrate(self, folder: Path = FOLDER, url: str = "") -> list[str]:
        owned = database(url or self.url)
        try:
            return owned.run(lambda each: migrate(each, folder))
        finally:
            owned.close()

    def see(self, organization: str, *identities: str) -> str:
        """Resolve an event of all known or all unknown identities, `channel:id`; returns its leaf."""
        self.at += 1
        pairs = [each.split(":") for each in identities]
        strong = sum(channel in ("customer", "email", "phone") for channel, _ in pairs)
        channels, ids = ([each[place] for each in pairs] for place in (0, 1))
        found = self.one(
            "SELECT identity.resolve(%s, %s, %s, %s, now() + %s * interval '1s')",
            *(organization, channels, ids, strong, self.at),
        )
        return str(found["leaf"])

    def plan(self, organization: str, **plan: Any) -> Any:
        self.at += 1
        whole = {"lead": 0, "attach": [], "merges": [], "refused": [], "shares": [], **plan}
        evidence = {"source": f"{organization}/shop", "external_event_id": f"e{self.at}", "identities": []}
        return self.one(
            "SELECT identity.apply(%s, %s, %s, now() + %s * interval '1s')",
            *(organization, json.dumps(whole), json.dumps(evidence), self.at),
        )

    def merge(self, organization: str, into: int, absorbed: int) -> int:
        """Merge two groups, by an event of the organization; returns the change's number."""
        merge = {"absorbed": absorbed, "into": into, "via": [into, absorbed]}
        self.plan(organization, lead=into, merges=[merge])
        return int(self.one("SELECT max(number) FROM identity.identity_change"))

    def one(self, query: str, *values: Any) -> Any:
        found = self.owner.execute(query, values).fetchone()
        assert found is not None
        return found[0]

    def rows(self, query: str) -> list[Any]:
        return self.owner.execute(query).fetchall()

    def topology(self) -> dict[str, set[str]]:
        """Of each leaf, with which leaves of its organization it is one."""
        found = self.rows(
            "SELECT array_agg(lead_organization_id) FROM identity.lead JOIN identity.lead_organization AS o"
            " USING (lead_id) GROUP BY root_id, o.organization_id"
        )
        return {leaf: set(leaves) for (leaves,) in found for leaf in leaves}

    def divided(self) -> Registry:
        self.migrate()
        return self.registry()

    def registry(self) -> Registry:
        app = self.server.passwords["app"]
        self.owner.execute(f"ALTER ROLE {embedded_postgres.APP_ROLE} PASSWORD '{app}'")
        return Registry(self.server, self.name)
