"""CPU time of `import torchtitan_npu` after `import torch`, the median of some fresh processes.

python bench/import_time.py [--json FILE] [--processes 10]
"""

import argparse
import json
import os
import subprocess
import sys

from _measure import finish, spread, verdict

PROGRAM = """
import json, os, time
import torch
def used():
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
before, begin = used(), time.perf_counter()
import torchtitan_npu
print(json.dumps([used() - before, time.perf_counter() - begin]))
"""


def measure_once() -> tuple[float, float]:
    """CPU and wall seconds of the import in a process of its own."""
    environment = os.environ | {"TORCH_DEVICE_BACKEND_AUTOLOAD": "0"}  # else `import torch` loads the package
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True, text=True)
    cpu, wall = json.loads(run.stdout.splitlines()[-1])
    return cpu, wall


def main() -> None:
    """Parses the options, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, default=10)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    measure_once()  # fills the file cache and writes the byte code
    samples = [measure_once() for _ in range(arguments.processes)]
    cpu, wall = spread([sample[0] for sample in samples]), spread([sample[1] for sample in samples])
    print(f"import torchtitan_npu after import torch, {arguments.processes} processes")
    print(f"CPU time: median {cpu['median']:.3f} s ({cpu['min']:.3f} - {cpu['max']:.3f}): {verdict(cpu['median'], 0.3, at_most=True)}")
    print(f"wall time: median {wall['median']:.3f} s")
    finish({"cpu": cpu, "wall": wall, "samples": samples}, arguments.json)


if __name__ == "__main__":
    main()
