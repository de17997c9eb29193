"""The laptop cloud and the command line `streakline`."""

import os

# Everything of a laptop cloud is on loopback, where no proxy goes. Requests, botocore, urllib, the functions
# and the SAM CLI take proxies from the environment, each in its own way; of NO_PROXY they read one spelling.
_PROXIES, _EXCEPTIONS = {"http_proxy", "https_proxy", "all_proxy"}, ("no_proxy", "NO_PROXY")
if _PROXIES & set(map(str.lower, os.environ)):
    _hosts = [host for name in _EXCEPTIONS for host in os.environ.get(name, "").split(",") if host]
    # `*` is all hosts, but only where it stands alone.
    _direct = "*" if "*" in _hosts else ",".join(dict.fromkeys([*_hosts, "127.0.0.1", "localhost", "::1"]))
    os.environ.update(dict.fromkeys(_EXCEPTIONS, _direct))
