"""Streams, queues and schedules of questions: answers become stats, messages reach phones."""
