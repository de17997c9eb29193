"""Redshift's SQL on DuckDB: functions are declared by name; any other one is refused."""
