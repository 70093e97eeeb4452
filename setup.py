"""What the package index shows: the README, with names of files in the place of links and pictures."""

import re
from pathlib import Path

from setuptools import setup

README = Path(__file__).with_name("README.md").read_text(encoding="utf-8")


def named(link):
    """Return the text of a link to a file, with the name of the file; of a picture the text alone."""
    picture, text, file = link.groups()
    return text if picture or text == file else f"{text} ({file})"


setup(
    long_description=re.sub(r"(!?)\[([^]]+)\]\((?!https?:|#)([^)]+)\)", named, README),
    long_description_content_type="text/markdown",
)
