"""Streams, queues and schedules of leads: events are published, become memory, and become features."""
