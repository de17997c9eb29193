"""The handlers of the nightly run's functions."""
