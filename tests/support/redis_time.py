"""Lets time pass in a real Redis, whose clock nobody can set: every key gets older."""

from datetime import timedelta

from adapters.platform.redis import Redis


def pass_time(redis: Redis, passed: timedelta) -> None:
    """Let so much of each key's life be over. A key without an end stays."""
    keys = redis.call("KEYS", "*")
    lives = redis.pipeline([["PTTL", key] for key in keys]) if keys else []
    gone = int(passed.total_seconds() * 1000)
    for key, life in zip(keys, lives, strict=True):
        if life > gone:
            redis.call("PEXPIRE", key, life - gone)
        elif life >= 0:
            redis.call("DEL", key)
