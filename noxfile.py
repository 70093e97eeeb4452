#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2025.2.9"]
# ///
"""`nox` runs the tests of the language on every Python that kernelopt supports and this machine has."""

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "virtualenv"
nox.options.download_python = "never"
nox.options.error_on_missing_interpreters = False  # they are named, and skipped


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def language(session):
    """Run the tests of the language, or the ones that stand behind `--`, with the newest dependencies."""
    session.install("-e", ".[test]")
    session.run("pytest", *(session.posargs or ["tests/language", "tests/test_import.py"]))


if __name__ == "__main__":
    nox.main()
