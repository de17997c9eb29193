"""The laptop cloud: emulator, Redis, PostgreSQL, tokens and the delivery of streams."""
