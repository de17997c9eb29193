"""The operator's commands: the nightly run, failure queues, reports."""
