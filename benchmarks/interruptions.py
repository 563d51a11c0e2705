"""What is left of fits that are interrupted at random moments, by Ctrl-C and by kill -9.

    python benchmarks/interruptions.py --count 200 --cold 20 --concurrent 10

Each fit is a process of its own, ``noisyica fit``, that gets SIGINT or SIGKILL at a moment between
its start and its end, over all priors in turn. It must end with 130 after SIGINT (a shell also says
130 where the signal itself ends the process, which happens while Python starts), with 137 after
SIGKILL, or with 0 if it was done. What it leaves must be readable, and must lead to the same bytes
as the fit that nobody interrupted. With ``--cold`` compiled code is not kept, so that most of the
time is spent in the compiler. With ``--concurrent`` several fits are started into one folder: one
must win, and the others must say why they do not. The exit code is 1 if anything is amiss.

Compiled code is kept in a folder, as the command line does, but in one of its own.
Fits are resumed in this process, which need not start again each time.
"""

from __future__ import annotations

import argparse
import collections
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import noisyica
from noisyica import Model
from noisyica.app import runs
from noisyica.app.options import PRIORS
from noisyica.app.record import CHECKPOINT, MODEL, RECORD, Record, Source

FILES = ("model.npz", "history.csv", "coefficients.npz")
"""The files of a run that must be the same, byte for byte; others tell the time."""
COLD_PRIOR = "ebg"
"""The prior that takes longest to compile."""


def main() -> int:
    """Run what was asked for, and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=200, help="fits that are interrupted")
    parser.add_argument("--cold", type=int, default=20, help="more of them, in the compiler")
    parser.add_argument("--concurrent", type=int, default=10, help="fits into one folder")
    parser.add_argument("--max-iter", type=int, default=1500, help="iterations of a fit")
    parser.add_argument("--compiled", type=Path, help="folder to keep compiled code in")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the moments")
    options = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # not ignored in what is started here
    with tempfile.TemporaryDirectory(prefix="interruptions-") as folder:
        compiled = (options.compiled or Path(folder) / "compiled").absolute()
        interruptions = Interruptions(Path(folder), compiled, options.max_iter, options.seed)
        return interruptions.run(options.count, options.cold, options.concurrent)


class Interruptions:
    """The fits, in a folder of their own."""

    def __init__(self, folder: Path, compiled: Path, max_iter: int, seed: int) -> None:
        self.folder, self.max_iter = folder, max_iter
        self.rng = np.random.default_rng(seed)
        self.seconds: dict[str, float] = {}
        self.amiss: list[str] = []
        mixing = np.random.default_rng(0).normal(size=(10, 3))
        rows = Model(mixing, noise_variance=0.1, prior="bg").sample(300, random_state=0)[0]
        np.save(folder / "rows.npy", rows)
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith("JAX_")
        } | {"NOISYICA_CACHE": str(compiled)}
        noisyica.keep_compiled(compiled)

    def run(self, count: int, cold: int, concurrent: int) -> int:
        """Make all experiments, print what happened, and return the exit code."""
        tally: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
        names = [PRIORS[i % len(PRIORS)] for i in range(count)] + [COLD_PRIOR] * cold
        for i, prior in enumerate(names):
            number = (signal.SIGINT, signal.SIGKILL)[i // len(PRIORS) % 2]
            if i >= count:
                number = signal.SIGINT
            said = self.interrupt(i, prior, number, cold=i >= count)
            tally[f"{'cold ' * (i >= count)}{number.name}"][said] += 1
            if i % 10 == 9:
                print(f"{i + 1} of {len(names)}, {len(self.amiss)} amiss", flush=True)
        for name, outcomes in tally.items():
            print(f"{name}: {sum(outcomes.values())}")
            for said, times in outcomes.most_common():
                print(f"  {times:4d}  {said}")
        if concurrent:
            self.crowd(concurrent)
        print(*self.amiss or ["Nothing amiss: every resume is the same to the last bit."], sep="\n")
        return 1 if self.amiss else 0

    def command(self, prior: str, name: str) -> list[str]:
        """The command of a fit into the folder of this name."""
        return [
            *(sys.executable, "-m", "noisyica", "fit", "rows.npy", "--prior", prior, "-p", "3"),
            *("--max-iter", str(self.max_iter), "--tol", "0", "--no-report", "-o", name),
        ]

    def begin(self, prior: str, name: str, cold: bool = False) -> subprocess.Popen[str]:
        """Start a fit."""
        return subprocess.Popen(
            self.command(prior, name),
            cwd=self.folder,
            env=self.environment | ({"NOISYICA_CACHE": "0"} if cold else {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def whole(self, prior: str, cold: bool) -> float:
        """Make the fit that nobody interrupts; return how long it takes, cold or not."""
        key = f"{prior}{' cold' * cold}"
        if key not in self.seconds:
            if not cold:  # what is compiled here is found on disk by all others
                self.start(prior, self.folder / f"first {prior}")
            begun = time.monotonic()
            process = self.begin(prior, f"whole {key}", cold)
            output, _ = process.communicate()
            assert process.returncode == 0, output
            self.seconds[key] = time.monotonic() - begun
        return self.seconds[key]

    def start(self, prior: str, run: Path) -> None:
        """Make the fit in this process."""
        settings = {"prior": prior, "n_components": 3, "max_iter": self.max_iter, "tol": 0.0}
        settings |= {"random_state": 0}
        runs.start(Source(self.folder / "rows.npy", {}), settings, run, page=False)

    def interrupt(self, i: int, prior: str, number: signal.Signals, cold: bool) -> str:
        """Interrupt a fit at a random moment, resume it, and return briefly what happened."""
        seconds = self.whole(prior, cold)
        run = self.folder / f"run {i}"
        process = self.begin(prior, run.name, cold)
        moment = self.rng.uniform(0, seconds)
        time.sleep(moment)
        process.send_signal(number)
        output, _ = process.communicate()
        code = process.returncode
        if code == -signal.SIGINT and number == signal.SIGINT:
            code, output = 130, ""  # Python itself was starting: the traceback is its own
        expected = {0, 130} if number == signal.SIGINT else {0, -signal.SIGKILL}
        what = f"{prior}, {number.name} after {moment:.3f} of {seconds:.2f} s"
        if code not in expected or "Traceback" in output:
            self.amiss.append(f"{what}: exit code {process.returncode}: {output}")
        left = self.left(run)
        try:
            self.resume(run, prior, f"whole {prior}{' cold' * cold}")
        except Exception as error:
            self.amiss.append(f"{what}, {left}: {error!r}")
        return f"{'137' if code == -signal.SIGKILL else code}, {left}"

    def left(self, run: Path) -> str:
        """What is left of a run, in a few words."""
        if not (run / RECORD).exists():
            return "nothing was learnt yet" if not run.exists() else "an empty folder"
        status = Record.read(run).status
        has = [name for name in (CHECKPOINT, MODEL) if (run / name).exists()]
        return f"{status}, with {' and '.join(has) or 'nothing'}"

    def resume(self, run: Path, prior: str, whole: str) -> None:
        """Take a run to its end in this process, and compare it with the whole one."""
        if (run / RECORD).exists():
            runs.resume(run)
        else:
            settings = Record.read(self.folder / whole).settings
            runs.start(Source(self.folder / "rows.npy", {}), settings, run, page=False)
        for name in FILES:
            if (run / name).read_bytes() != (self.folder / whole / name).read_bytes():
                raise ValueError(f"{name} is not that of the whole fit")
        present, expected = ({p.name for p in f.iterdir()} for f in (run, self.folder / whole))
        if present != expected:
            raise ValueError(f"the folder has {sorted(present ^ expected)} more or less")

    def crowd(self, count: int) -> None:
        """Start several fits into one folder: one wins, the others say why they do not."""
        processes = [self.begin("bg", "crowd") for _ in range(count)]
        outputs = [process.communicate()[0] for process in processes]
        codes = [process.returncode for process in processes]
        reasons = collections.Counter(
            "in use" if "is in use" in output else "holds a run already"
            for output, code in zip(outputs, codes, strict=True)
            if code == 1 and ("is in use" in output or "holds a run already" in output)
        )
        print(f"{count} fits into one folder: {codes.count(0)} wins, others: {dict(reasons)}")
        if codes.count(0) != 1 or sum(reasons.values()) != count - 1:
            self.amiss.append(f"{count} fits into one folder: {codes}, {outputs}")
        self.whole("bg", cold=False)
        self.resume(self.folder / "crowd", "bg", "whole bg")


if __name__ == "__main__":
    sys.exit(main())
