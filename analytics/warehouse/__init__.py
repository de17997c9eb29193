"""Curated Parquet becomes warehouse tables and models."""
