"""docs/lessons: every notebook runs, prints what it says, draws a figure, and has the form of a lesson."""

from __future__ import annotations

import re
from pathlib import Path
from time import process_time

import matplotlib as mpl
import pytest
from matplotlib import pyplot
from matplotlib.text import Text

from tests.collected import problems_built
from tests.pages import FENCED, printed_by, python_blocks

ROOT = Path(__file__).resolve()
while not (ROOT / "pyproject.toml").exists():
    ROOT = ROOT.parent
LESSONS = sorted((ROOT / "docs" / "lessons").glob("*.md"))
HEADER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
OPENING = re.compile(r"\A\n# Lesson (\d+): [^\n]+\n\n([^.?!]+[.?!])")
EXERCISE = "\n## Exercise\n"
LONGEST = 80  # lines of text and code, blank ones and the header not counted
SLOWEST = 30.0  # seconds of this process, which do not depend on what else the machine does
SMALLEST_TEXT = 1 / 40  # height of the letters over the width of the figure, to be read from the back row


def check_form(lesson):
    """The header, the length, the one question of the text, and the exercise with its answer."""
    text = lesson.read_text(encoding="utf-8")
    header = HEADER.match(text)
    assert header, f"{lesson.name} does not begin with the header of a notebook"
    for entry in ("jupytext:", "extension: .md", "format_name: myst", "kernelspec:", "name: python3"):
        assert entry in header[1], f"the header of {lesson.name} has no {entry}"
    body = text[header.end() :]
    assert sum(bool(line.strip()) for line in body.splitlines()) <= LONGEST
    opening = OPENING.match(body)
    assert opening, f"{lesson.name} does not begin with a title '# Lesson 1: ...' and a sentence"
    number, first = opening.groups()
    assert int(number) == int(lesson.name[:2])
    assert first.endswith("?"), f"the first sentence is no question: {first}"
    before, _, exercise = body.partition(EXERCISE)
    assert FENCED.sub("", before).count("?") == 1
    assert body.count(EXERCISE) == 1
    assert "\n## " not in exercise
    assert len(python_blocks(exercise)) == 1, "the answer is one cell below the exercise"
    task = FENCED.split(exercise)[0]
    assert task.strip(), "the exercise is no text above its answer"
    return body


def texts_of(figure):
    """The texts of a figure that are drawn."""
    return [text for text in figure.findobj(Text) if text.get_visible() and text.get_text().strip()]


@pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)
def test_lesson(lesson):
    body = check_form(lesson)
    assert "savefig" not in body
    namespace, start = {}, process_time()
    pyplot.close("all")  # figures of other tests
    try:
        with mpl.rc_context({"backend": "Agg"}), problems_built(lesson.name) as built:
            for source, said in python_blocks(body):
                printed = printed_by(source, lesson.name, namespace)
                assert said is None or printed == said
            figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
            assert figures, "no figure is drawn"
            for figure in figures:
                figure.canvas.draw()
                width = figure.get_figwidth() * 72  # points
                for text in texts_of(figure):
                    assert text.get_fontsize() >= SMALLEST_TEXT * width, text.get_text()
    finally:
        pyplot.close("all")
    assert process_time() - start < SLOWEST
    assert not built.check_duals()


def test_lessons_are_numbered_in_order():
    assert [int(lesson.name[:2]) for lesson in LESSONS] == [k + 1 for k in range(len(LESSONS))]
    assert len(LESSONS) >= 5
