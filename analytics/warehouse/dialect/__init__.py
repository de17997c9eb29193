"""Redshift's SQL on DuckDB: what a function means is told here by its name, and what is not told is refused."""
