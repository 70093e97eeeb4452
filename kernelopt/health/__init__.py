"""The health of kernel matrices: whether they are symmetric, semidefinite, of one scale, and different."""

from kernelopt.health.kernel_report import KernelReport, kernel_report

__all__ = ["KernelReport", "kernel_report"]
