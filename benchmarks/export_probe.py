"""Run as a process of its own: exports a conversation to /dev/null and prints seconds and peak memory as JSON.

Without an argument it only imports chatkeep: the floor that the export is measured from. The database comes from
CHATKEEP_URL.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path


def peak_bytes() -> int:
    """The high-water mark of this process's memory.

    Linux lets a new program inherit ru_maxrss from the process that started it, so the mark of this program's own
    memory is read where there is one.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def main(arguments: list[str]) -> int:
    import chatkeep  # noqa: F401

    began, code = time.perf_counter(), 0
    if arguments:
        from chatkeep.cli import main as command

        sys.argv = ["chatkeep", "export", *arguments, "--output", "/dev/null"]
        try:
            command()
        except SystemExit as end:
            code = int(end.code or 0)
    print(json.dumps({"seconds": time.perf_counter() - began, "peak": peak_bytes()}))
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
