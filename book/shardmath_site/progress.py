"""Shows a reader's score on each page with questions, and for all chapters.

The page gives the maximum score, from the records of the questions. The reader's own
score is computed by `progress.js`, shown by `score.js` and `panel.js`, and kept in the
browser by `storage.js`. All of them read from ``questions.js`` which questions each
page has.
"""

import json
from collections.abc import Collection
from pathlib import Path

from docutils import nodes
from sphinx.transforms import SphinxTransform

from shardmath.exercises import answers
from shardmath.exercises.kinds import Question

from .numbering import STEM
from .question import is_answered_here

FIRST = 100  # other scripts have 500, so they run when the progress is available
QUESTIONS = "questions.js"  # under _static
PANEL = "your-progress"


class score(nodes.General, nodes.Element):  # noqa: N801
    """The score of a chapter's exercises. Attribute: `number`, the chapter's."""


class PlaceScore(SphinxTransform):
    """Put the score below the title of ``exercises/NN_slug``."""

    default_priority = 441  # after the title has its number

    def apply(self, **kwargs):
        title = self.document.next_node(nodes.title)
        if title and (number := _chapter(self.env.docname)):
            title.parent.insert(title.parent.index(title) + 1, score(number=number))
            # Links in Markdown find it as if it were a heading: (line, id, title).
            places = self.env.metadata[self.env.docname].setdefault("myst_slugs", {})
            places[PANEL] = (0, PANEL, "Your progress")


def _chapter(docname: str) -> str:
    """The chapter whose questions are on a page, or "".

    >>> _chapter("exercises/01_rooflines"), _chapter("chapters/01_rooflines")
    ('01', '')
    """
    stem = STEM.match(docname)
    asks = stem and stem[1] == "exercises" and stem[2] in answers.chapters()
    return stem[2] if asks else ""


def reached(records: Collection[Question]) -> str:
    """HTML of a score before the first answer, which score.js updates.

    >>> reached(answers.chapter("14").values())[:53]
    '<span><strong data-count="points">0</strong> of 17 po'
    """
    points = sum(record.points for record in records)
    return (
        f'<span><strong data-count="points">0</strong> of {points} points</span> '
        f'<span><span data-count="right">0</span> of {len(records)} questions right'
        '<span data-some="begun" hidden>, <span data-count="begun"></span> begun'
        "</span></span>"
    )


def where(records: Collection[Question]) -> str:
    """How many questions the page can judge, and where to answer the others."""
    here = sum(map(is_answered_here, records))
    if here == len(records):
        return f"All {here} can be answered on this page."
    others = "the other one" if len(records) - here == 1 else "the others"
    return (
        f"{here} of the {len(records)} can be answered on this page, {others} in "
        "Jupyter."
    )


def panel(number: str) -> str:
    """HTML of a chapter's score, and of the controls to save, add or erase progress."""
    own = answers.chapter(number).values()
    every = answers.questions().values()
    return f"""\
<div class="sm-score" role="group" aria-label="Your score">
<p class="sm-score-line" data-score="{number}">{reached(own)}</p>
<div class="sm-score-bar" aria-hidden="true"><div></div></div>
<p class="sm-score-where">{where(own)}</p>
<p class="sm-score-trouble"></p>
<p class="sm-unseen" role="status"></p>
<details class="sm-keeping" id="{PANEL}"><summary>Your progress</summary>
<p class="sm-score-line" data-score="all"><span>All chapters:</span>
{reached(every)}</p>
<p>Your answers and guesses are kept in this browser alone; a file takes them elsewhere.
Safari erases what a site keeps after seven days of use without a visit to it: there,
save to a file. What comes from a file is added to what is here: a right answer stays
right, and of two texts the newer one stays. The notebooks' own file is taken
too: in Python, <code>shardmath.exercises.progress.store().path</code> says
where it is.</p>
<p class="sm-keeping-do"><button type="button" value="save">Save to a file</button>
<button type="button" value="open">Add from a file</button>
<button type="button" value="erase">Erase …</button>
<input type="file" accept=".json,application/json" hidden></p>
<p class="sm-keeping-said" role="status"></p>
</details>
<dialog class="sm-erase" aria-labelledby="erase-title"><form method="dialog">
<p id="erase-title"><strong></strong></p>
<p>They are gone from this browser for good, unless they are saved to a file. Settings,
such as the accelerator that you chose, stay.</p>
<p class="sm-keeping-do"><button value="erase">Erase them</button>
<button value="keep" autofocus>Keep them</button></p></form></dialog>
</div>
"""


def questions(pages: Collection[str]) -> str:
    """The script that lists each page's questions and their points."""
    asked = {
        page: {record.id: record.points for record in answers.chapter(number).values()}
        for page in sorted(pages)
        if (number := _chapter(page))
    }
    return f"Shardmath.questions = {json.dumps(asked, separators=(',', ':'))};\n"


def _write_questions(app, env):
    """Write the script before the pages, which link to it with its digest."""
    if app.builder.format == "html":
        folder = Path(app.outdir, "_static")
        folder.mkdir(parents=True, exist_ok=True)
        (folder / QUESTIONS).write_text(questions(env.found_docs), encoding="utf-8")


def _add_files(app, pagename, templatename, context, doctree):
    """Add the panel's script to pages with a score."""
    if doctree and any(doctree.findall(score)):
        app.add_js_file("panel.js")


def _write(translator, node):
    translator.body.append(panel(node["number"]))
    raise nodes.SkipNode


def setup(app):
    """Place the score, and load the reader's progress before all other scripts."""
    app.add_node(score, html=(_write, None))
    app.add_transform(PlaceScore)
    app.connect("env-updated", _write_questions)
    app.connect("html-page-context", _add_files)
    app.add_css_file("progress.css")
    app.add_js_file("storage.js", priority=FIRST)
    app.add_js_file("progress.js", priority=FIRST + 1)
    app.add_js_file(QUESTIONS, priority=FIRST + 2)
    app.add_js_file("score.js")
