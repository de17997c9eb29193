"""Raw objects become curated Parquet files."""
