"""What analysts may read in Redshift. Each night builds tables anew; a dropped table loses its grants."""

from analytics.warehouse.warehouse import Warehouse

ROLE = "streakline_analysts"
READABLE = "marts, dimensions, facts"
_FIND = f"SELECT role_name FROM svv_roles WHERE role_name = '{ROLE}'"  # noqa: S608 (a constant)


def grant_analysts(warehouse: Warehouse) -> None:
    """Make the role of analysts and let it read what the models make, now and in the nights to come.

    warehouse: of Redshift; the user who runs this also builds the models, because default privileges are of
    the user who creates a table. An admin gives the role to people (sql/README.md).
    Running it again changes nothing. Raises StatementFailed.
    """
    create = [] if warehouse.rows(_FIND) else [f"CREATE ROLE {ROLE}"]
    warehouse.run(
        [
            *create,
            f"GRANT USAGE ON SCHEMA {READABLE} TO ROLE {ROLE}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {READABLE} TO ROLE {ROLE}",
            f"ALTER DEFAULT PRIVILEGES IN SCHEMA {READABLE} GRANT SELECT ON TABLES TO ROLE {ROLE}",
        ]
    )
