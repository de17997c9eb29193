"""Batch work over the lake: curation, warehouse, features of leads, recompute, reconciliation, reports."""
