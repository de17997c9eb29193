"""The error of what Redshift would answer and DuckDB would answer otherwise."""


class NotAsRedshift(ValueError):
    """An expression is not known to answer here as Redshift does. The message names it, and the reason."""
