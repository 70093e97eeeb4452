"""The library of theorems written in the language of kernelopt, one module per paper."""

__distribution__ = "kernelopt"  # by which kernelopt knows its own: another project has a package of this name
