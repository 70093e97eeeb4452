"""The library of theorems written in the language of kernelopt, one module per paper."""
