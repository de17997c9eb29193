"""The nightly run's work in the warehouse, and what it sets up there."""
