"""What a Redis server says of its scripts: how long each blocked it, and how much CPU they took."""

from adapters.platform.redis import Redis

LOGGED_MAX = 200_000


class ServerLog:
    """The slow log and the counters of one server, since `begin`."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._slower_than_ms = self._cpu_before = 0.0
        redis.call("CONFIG", "SET", "slowlog-max-len", LOGGED_MAX)

    def begin(self, slower_than_us: int) -> None:
        """Log commands from a duration on; forget those so far."""
        self._redis.call("CONFIG", "SET", "slowlog-log-slower-than", slower_than_us)
        self._redis.call("SLOWLOG", "RESET")
        self._redis.call("CONFIG", "RESETSTAT")
        self._slower_than_ms, self._cpu_before = slower_than_us / 1000, 0.0
        self._cpu_before = self.cpu_ms()

    def scripts_with(self, key: str = "") -> list[float]:
        """Return the sorted milliseconds of all logged scripts, or of those with a key."""
        entries = self._redis.call("SLOWLOG", "GET", LOGGED_MAX)
        scripts = (each for each in entries if each[3][0].upper() == "EVAL" and (not key or key in each[3]))
        return sorted(each[2] / 1000 for each in scripts)

    def used_bytes(self) -> int:
        """Return the memory in use."""
        return int(self._redis.call("INFO", "memory").partition("used_memory:")[2].partition("\r")[0])

    def cpu_ms(self) -> float:
        """Return the server's CPU, all commands included."""
        told = self._redis.call("INFO", "cpu").replace("\r", "").splitlines()
        parts = dict(each.split(":") for each in told if ":" in each)
        return 1000 * sum(float(parts[f"used_cpu_{kind}"]) for kind in ("user", "sys")) - self._cpu_before

    def p99_ms(self) -> tuple[float, str]:
        """Return the 99th percentile of what scripts block, and all in words.

        It is the duration from which on commands are logged if fewer scripts reach that.
        """
        slow, stats = self.scripts_with(), self._redis.call("INFO", "commandstats")
        told = dict(each.split("=") for each in _line(stats, "cmdstat_eval:").split(","))
        calls, mean = int(told["calls"]), float(told["usec_per_call"]) / 1000
        above, worst = int(calls * 0.01), max(slow, default=self._slower_than_ms)
        p99 = slow[-above - 1] if len(slow) > above else self._slower_than_ms
        each = f"mean {mean:.2f} ({self.cpu_ms() / calls:.2f} of CPU), max {worst:.1f} ms"
        return p99, f"{calls:,} scripts, {each}"


def _line(text: str, name: str) -> str:
    return str(text.partition(name)[2].partition("\r")[0])
