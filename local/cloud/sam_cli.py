"""Runs the SAM CLI, on its own Python, for the laptop cloud: with C where it reads YAML, and with light zips.

SAM reads template.yaml and its nested stacks seventeen times, and compresses 40,000 files that the emulator
unpacks at once. A deployment to AWS is made by the plain `sam`.
"""

import zlib

import yaml

LIGHT = 1  # of nine levels: a quarter of the time, and a tenth more bytes

setattr(yaml, "SafeLoader", yaml.CSafeLoader)  # noqa: B010 (the stubs take it for a type)
setattr(zlib, "Z_DEFAULT_COMPRESSION", LIGHT)  # noqa: B010 (the stubs take it for a constant)

if __name__ == "__main__":
    from samcli.cli.main import cli  # it takes the two above as it is imported

    cli(prog_name="sam")
