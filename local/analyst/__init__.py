"""For analysts: one query in Redshift's SQL, on a warehouse or on a lake; our models as a package of dbt.

Example: `from local.analyst import frame`, then `frame("SELECT * FROM marts.stickiness", stack_name="prod")`.
`streakline sql` is the same on the command line.
"""

from local.analyst.output import Answer, QueryFailed
from local.analyst.sql import ask, frame, table

__all__ = ["Answer", "QueryFailed", "ask", "frame", "table"]
