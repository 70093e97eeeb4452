"""docs/lessons: every lesson and its answers run, have the form of a lesson, and stand in the index."""

from __future__ import annotations

import re
from time import process_time

import matplotlib as mpl
import pytest
from matplotlib import pyplot
from matplotlib.text import Text

from tests.collected import problems_built
from tests.pages import FENCED, ROOT, printed_by, python_blocks

FOLDER = ROOT / "docs" / "lessons"
LESSONS = sorted(FOLDER.glob("[0-9]*.md"))
HEADER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
OPENING = re.compile(r"\A\n# Lesson (\d+): ([^\n]+)\n\n([^.?!]+[.?!])")
ENTRY = re.compile(r"^\| (\d+) \| \[([^]]+)\]\((\w+\.md)\) \| ([^|]+) \|", re.MULTILINE)  # a row of the index
EXERCISES = "\n## Exercises\n"
LONGEST = 88  # lines of text with TeX and of code, blank ones and the header not counted
WIDEST = 120  # columns
SLOWEST = 30.0  # seconds of this process, which do not depend on what else the machine does
SMALLEST_TEXT = 1 / 40  # height of the letters over the width of the figure, to be read from the back row
each_lesson = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.stem)


def body_of(notebook):
    """What stands below the header of a notebook, in which no printed output is typed by hand."""
    text = notebook.read_text(encoding="utf-8")
    header = HEADER.match(text)
    assert header, f"{notebook.name} does not begin with the header of a notebook"
    for entry in ("jupytext:", "extension: .md", "format_name: myst", "kernelspec:", "name: python3"):
        assert entry in header[1], f"the header of {notebook.name} has no {entry}"
    body = text[header.end() :]
    fences = set(re.findall(r"^```.*", body, re.MULTILINE))
    assert fences == {"```{code-cell} python", "```"}, f"{notebook.name} has a block that is no cell"
    assert "savefig" not in body
    assert "\nfig\n```" not in body, "a figure is drawn at the end of its cell, and a second time by its name"
    assert max(map(len, body.splitlines())) <= WIDEST
    return body


def opening_of(lesson):
    """The number, the title and the first sentence of a lesson."""
    opening = OPENING.match(body_of(lesson))
    assert opening, f"{lesson.name} does not begin with a title '# Lesson 1: ...' and a sentence"
    number, title, first = opening.groups()
    return int(number), title, " ".join(first.split())


def figures_of(notebook):
    """The figures that a notebook has drawn, when all of its cells have run in one namespace."""
    namespace, start = {}, process_time()
    pyplot.close("all")  # figures of other tests
    with mpl.rc_context({"backend": "Agg"}), problems_built(notebook.name) as built:
        for source, _ in python_blocks(body_of(notebook)):
            printed_by(source, notebook.name, namespace)
        figures = [pyplot.figure(number) for number in pyplot.get_fignums()]
        for figure in figures:
            figure.canvas.draw()
    pyplot.close("all")
    assert process_time() - start < SLOWEST
    assert not built.check_duals()
    return figures


@each_lesson
def test_form_of_a_lesson(lesson):
    number, _, first = opening_of(lesson)
    assert number == int(lesson.name[:2])
    assert first.endswith("?"), f"the first sentence is no question: {first}"
    body = body_of(lesson)
    assert sum(bool(line.strip()) for line in body.splitlines()) <= LONGEST
    before, *exercises = body.split(EXERCISES)
    assert FENCED.sub("", before).count("?") == 1
    assert len(exercises) == 1
    assert "```" not in exercises[0]
    assert "\n## " not in exercises[0]
    assert re.findall(r"^(\d+)\. ", exercises[0], re.MULTILINE) == ["1", "2", "3"]
    assert exercises[0].endswith(f"\n\nAnswers: [answers/{lesson.name}](answers/{lesson.name})\n")


@each_lesson
def test_form_of_the_answers(lesson):
    body = body_of(FOLDER / "answers" / lesson.name)
    assert body.startswith(f"\n# Answers to lesson {int(lesson.name[:2])}\n")
    setup, *answers = re.split(r"^## (?=Exercise)", body, flags=re.MULTILINE)
    assert f"(../{lesson.name})" in setup
    assert [answer.splitlines()[0] for answer in answers] == [f"Exercise {k}" for k in (1, 2, 3)]
    for answer in answers:
        assert FENCED.split(answer)[0].split()[2:], "no text stands above the first cell"
        assert any("assert " in source for source, _ in python_blocks(answer)), "no cell asserts the answer"


@each_lesson
def test_lesson_runs_and_draws_one_figure(lesson):
    (figure,) = figures_of(lesson)
    width = figure.get_figwidth() * 72  # points
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip():
            assert text.get_fontsize() >= SMALLEST_TEXT * width, text.get_text()


@each_lesson
def test_answers_run(lesson):
    figures_of(FOLDER / "answers" / lesson.name)


def test_index_lists_every_lesson_with_its_question():
    entries = ENTRY.findall((FOLDER / "index.md").read_text(encoding="utf-8"))
    openings = [(*opening_of(lesson), lesson.name) for lesson in LESSONS]
    assert entries == [(str(number), title, name, first) for number, title, first, name in openings]
    assert [int(number) for number, *_ in entries] == [k + 1 for k in range(len(entries))]
