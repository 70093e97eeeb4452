"""A package that extends kernelopt from outside: a loss, a kernel, a fidelity, a method and a formulation."""
