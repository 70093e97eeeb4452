"""Clarabel in a process of its own, which can be killed at any moment.

Clarabel's set-up holds the lock of the interpreter: for large semidefinite cones no other thread of a process
runs for seconds, so that neither Ctrl-C nor a time limit is noticed.
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

from kernelopt.errors import InsufficientMemoryError

CHILD = """
import io, json, os, sys
out = os.fdopen(os.dup(1), "wb")
os.dup2(2, 1)  # standard output is for the result alone; what the solver prints goes to stderr
def ended(kind, error, trace):
    sys.__excepthook__(kind, error, trace)
    os._exit(75 if issubclass(kind, MemoryError) else 1)  # 75: NO_MEMORY
sys.excepthook = ended
import clarabel, numpy as np, scipy.sparse as sp
sent = np.load(io.BytesIO(sys.stdin.buffer.read()), allow_pickle=False)
header = json.loads(str(sent["header"]))
P, A = (sp.csc_array((sent[k + "data"], sent[k + "indices"], sent[k + "indptr"]), header[k]) for k in "PA")
settings = clarabel.DefaultSettings()
for key, value in header["settings"].items():
    setattr(settings, key, value)
cones = [getattr(clarabel, name)(*arguments) for name, *arguments in header["cones"]]
found = clarabel.DefaultSolver(P, sent["c"], A, sent["b"], cones, settings).solve()
numbers = {key: getattr(found, key) for key in ("obj_val", "solve_time", "iterations")}
written = io.BytesIO()
np.savez(
    written, header=json.dumps({"status": str(found.status), **numbers}), x=found.x, z=found.z, s=found.s
)
try:
    out.write(written.getvalue())
    out.close()
except BrokenPipeError:  # the parent has ended or closed the pipe
    os._exit(1)
"""


# Exit statuses of a process that had no memory: killed by the kernel, aborted by the solver's allocator, and
# `MemoryError`, which the process turns into a status of its own.
NO_MEMORY = 75
OUT_OF_MEMORY = (-9, -6, NO_MEMORY)


class SolverProcess:
    """One solve in a new process.

    Parameters
    ----------
    P, A : csc_array
    c, b : arrays
    cones : list of (name of Clarabel's class, *arguments)
    settings : dict
        Clarabel's settings that differ from its defaults.

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
        header = {"cones": cones, "settings": settings, "P": P.shape, "A": A.shape}
        self.arrays["header"] = json.dumps(header)
        orders = [cone[1] for cone in cones if cone[0] == "PSDTriangleConeT"]
        self.described = f"semidefinite cones of the orders {orders}" if orders else f"{len(c)} variables"
        # In a session of its own the process gets no Ctrl-C from the terminal: the parent kills it.
        self.process = subprocess.Popen(  # noqa: S603 (our own interpreter and our own text)
            [sys.executable, "-P", "-c", CHILD],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )

    def work(self) -> Any:
        """Return the result of the solve, with the attributes of Clarabel's solution that cvxpy reads.

        Raises
        ------
        OSError
            If the process ended without a result.
        InsufficientMemoryError
            If it ended for lack of memory.
        """
        sent = io.BytesIO()
        np.savez(sent, **self.arrays)
        raw, _ = self.process.communicate(sent.getvalue())
        if self.process.returncode in OUT_OF_MEMORY:
            raise InsufficientMemoryError(
                "a conic solve must fit into memory, got a process of Clarabel that ended without it (status "
                f"{self.process.returncode}), for {self.described}. Pass solver='SCS', which stores no dense "
                "block, or take fewer points, or another method: kernelopt.explain(problem) lists those that "
                "apply."
            )
        if self.process.returncode != 0:
            raise OSError("the process of Clarabel ended without a result")
        with np.load(io.BytesIO(raw), allow_pickle=False) as found:
            values = {key: found[key] for key in ("x", "z", "s")}
            return SimpleNamespace(**values, **json.loads(str(found["header"])))

    def end(self) -> None:
        """Kill the process."""
        self.process.kill()
        self.process.wait()
