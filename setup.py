"""What the package index shows: the README, whose links to files of the repository are there plain names."""

import re
from pathlib import Path

from setuptools import setup

README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")

setup(
    long_description=re.sub(r"\[([^]]+)\]\((?!https?:|#)[^)]+\)", r"\1", README),
    long_description_content_type="text/markdown",
)
