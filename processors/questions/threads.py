"""The modules of this folder that write with several threads, which a measurement must not have."""

THREADS = ("processors.questions.fan_out", "processors.questions.reminders")
