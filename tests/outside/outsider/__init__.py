"""A package that extends kernelopt from outside: a loss, a kernel, a method and a formulation."""
