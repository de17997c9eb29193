"""Redshift's SQL on DuckDB: its functions are listed by name, and a query with any other is refused."""
