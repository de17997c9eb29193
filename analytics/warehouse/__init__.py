"""Loads curated Parquet into the warehouse; builds and tests the models there."""
