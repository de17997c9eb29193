"""The Lambda handlers of the nightly run."""
