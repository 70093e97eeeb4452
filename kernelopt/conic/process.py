"""Clarabel in a process of its own, which can be ended at any moment.

Its set-up keeps the lock of the interpreter: seconds for large semidefinite cones, in which no thread of the
process runs, so neither Ctrl-C nor a limit is noticed.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.sparse as sp

CHILD = """
import io, json, os, sys
out = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # what the solver prints does not disturb the result
import clarabel, numpy as np, scipy.sparse as sp
sent = np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
told = json.loads(str(sent["told"]))
P, A = (sp.csc_array((sent[k + "data"], sent[k + "indices"], sent[k + "indptr"]), told[k]) for k in "PA")
settings = clarabel.DefaultSettings()
for key, value in told["settings"].items():
    setattr(settings, key, value)
cones = [getattr(clarabel, name)(*arguments) for name, *arguments in told["cones"]]
found = clarabel.DefaultSolver(P, sent["c"], A, sent["b"], cones, settings).solve()
numbers = {key: getattr(found, key) for key in ("obj_val", "solve_time", "iterations")}
written = io.BytesIO()
np.savez(
    written, told=json.dumps({"status": str(found.status), **numbers}), x=found.x, z=found.z, s=found.s
)
try:
    out.write(written.getvalue())
    out.close()
except BrokenPipeError:  # nobody waits any more
    os._exit(1)
"""


class ApartFailed(Exception):
    """The process ended without a result."""


class Apart:
    """One solve in a new process.

    Parameters
    ----------
    P, A : csc_array
    c, b : arrays
    cones : list of (name of Clarabel's class, *arguments)
    settings : dict
        Those that are not Clarabel's defaults.

    Raises
    ------
    OSError, ValueError
        If no process may be started, or no interpreter is known.
    """

    def __init__(
        self, P: Any, c: Any, A: Any, b: Any, cones: list[tuple[Any, ...]], settings: dict[str, Any]
    ) -> None:
        self.arrays: dict[str, Any] = {"c": c, "b": b}
        for name, matrix in (("P", sp.csc_array(P)), ("A", sp.csc_array(A))):
            for part in ("data", "indices", "indptr"):
                self.arrays[name + part] = getattr(matrix, part)
        told = {"cones": cones, "settings": settings, "P": P.shape, "A": A.shape}
        self.arrays["told"] = json.dumps(told)
        # In a session of its own Ctrl-C on the terminal does not reach it: the parent ends it.
        self.process = subprocess.Popen(  # noqa: S603 (our own interpreter and our own text)
            [sys.executable, "-P", "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def work(self) -> Any:
        """Return what Clarabel's solution holds.

        Raises
        ------
        ApartFailed
        """
        sent = io.BytesIO()
        np.savez(sent, **self.arrays)
        raw, _ = self.process.communicate(sent.getvalue())
        if self.process.returncode != 0:
            raise ApartFailed
        with np.load(io.BytesIO(raw), allow_pickle=False) as found:
            values = {key: found[key] for key in ("x", "z", "s")}
            return SimpleNamespace(**values, **json.loads(str(found["told"])))

    def end(self) -> None:
        """End the process at once."""
        self.process.kill()
        self.process.wait()
