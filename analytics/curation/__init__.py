"""Raw objects become curated Parquet."""
