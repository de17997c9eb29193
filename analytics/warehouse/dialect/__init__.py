"""Redshift's SQL on DuckDB: what a function means is told by its name; what is not told is refused."""
