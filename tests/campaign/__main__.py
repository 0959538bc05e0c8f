"""`python -m tests.campaign`: run all attacks, print how often each was tried and what it broke; exit 1 if any did."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

from tests.campaign.samples import compile_kernels
from tests.campaign.tally import Tally

ATTACKS = {
    "kills": ("kills.attack", 320),
    "power_loss": ("power_loss.attack", 320),
    "full_disk": ("full_disk.attack", 100),
    "no_rights": ("no_rights.attack", 160),
    "read_only": ("read_only.attack", 48),
    "bit_flips": ("bit_flips.attack", 500),
    "fuzzed_inputs": ("fuzzed_inputs.attack", 1000),
    "bad_options": ("bad_options.attack", 1000),
    "hostile_projects": ("hostile_projects.attack", 300),
    "hostile_requests": ("hostile_requests.attack", 1000),
    "slow_clients": ("dropped_clients.fall_silent", 100),
    "dropped_streams": ("dropped_clients.drop_streams", 500),
}
"""Where each attack is, in `tests.campaign`, and how often the whole campaign tries it."""


def run_attack(name: str, count: int, seed: int) -> Tally:
    """Run one attack in a new folder, which is deleted."""
    compile_kernels()
    module, _, function = ATTACKS[name][0].partition(".")
    folder = Path(tempfile.mkdtemp(prefix=f"smalti-{name}-"))
    try:
        return getattr(import_module(f"tests.campaign.{module}"), function)(count, seed, folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign", description="Attack the product.")
    parser.add_argument("--attacks", default=",".join(ATTACKS), metavar="NAME,…", help="which ones (all)")
    parser.add_argument("--share", type=float, default=1.0, help="part of the whole campaign (1.0)")
    parser.add_argument("--tries", type=int, help="tries of each attack, instead of a share")
    parser.add_argument("--seed", type=int, default=1, help="of the first try; the next ones have the next seeds (1)")
    options = parser.parse_args()
    tallies = []
    for name in options.attacks.split(","):
        count = options.tries or max(1, round(options.share * ATTACKS[name][1]))
        began = time.monotonic()
        print(f"{name}: {count} tries …", end=" ", flush=True)
        tally = run_attack(name, count, options.seed)
        print(f"{len(tally.failures)} failed, {time.monotonic() - began:.0f} s", flush=True)
        tallies.append((name, tally))
    print_table(tallies)
    return int(any(tally.failures for _, tally in tallies))


def print_table(tallies: list[tuple[str, Tally]]) -> None:
    print(f"\n{'attack':<18}{'tried':>7}{'failed':>8}  outcomes")
    for name, tally in tallies:
        outcomes = ", ".join(f"{count} {outcome}" for outcome, count in sorted(tally.outcomes.items()))
        print(f"{name:<18}{tally.tried:>7}{len(tally.failures):>8}  {outcomes}")
    for name, tally in tallies:
        if tally.failures:
            print(f"\n{name}; repeat one with: python -m tests.campaign --attacks {name} --tries 1 --seed SEED")
        for failure in tally.failures:
            print(f"  {failure}")


if __name__ == "__main__":
    sys.exit(main())
