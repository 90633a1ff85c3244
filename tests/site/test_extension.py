"""The Sphinx extension on a page of its own: formulas, notes, lean styles."""

import pytest
from docutils import nodes
from sphinx.errors import ExtensionError

from shardmath_site import notes, trim
from shardmath_site.pages import describe


@pytest.fixture
def build(build_page):
    """Build one page of Markdown; gives its HTML, its doctree and the warnings."""
    return build_page


def test_tag_is_number_and_anchor(build):
    r"""``\tag{1.2}`` gives the number beside the formula, and a link to it works."""
    html, _, warnings = build(
        "# A\n\n$$\na = b \\tag{1.2}\n$$\n\nBy [(1.2)](#eq-1.2).\n"
    )
    assert 'class="sm-formula" id="eq-1-2"' in html
    assert html.count('href="#eq-1-2"') == 2
    assert "<math" in html
    assert not warnings


def test_an_anchor_for_jupyter_leaves_nothing_on_the_page(build):
    """Neither a second element of the same name nor an empty paragraph."""
    html, doctree, warnings = build(
        'First.\n\n<a id="eq-1.2"></a>\n\n$$\na = b \\tag{1.2}\n$$\n\nAnd (1.2).\n'
    )
    assert [node.astext().strip() for node in doctree.children] == [
        "First.",
        "a = b",
        "And (1.2).",
    ]
    assert html.count('id="eq-1') == 1
    assert not warnings


def test_punctuation_stays_with_its_formula(build):
    """Marks that touch a formula move into it, none twice and none lost."""
    html, *_ = build("# A\n\nSmall ($b = c$), then $d$. End.\n")
    assert "Small <span" in html
    assert html.count('class="sm-with">(</span>') == 1
    assert html.count('class="sm-with">),</span></span></span></span></span> then') == 1
    assert html.count('class="sm-with">.</span></span></span></span></span> End.') == 1


def test_punctuation_is_taken_from_its_own_place(build):
    """Two texts of a line may be equal: the first comma here belongs to no formula."""
    html, *_ = build("# A\n\nWith `a`, `b` and $c$, `d`.\n")
    assert "a</span></code>, <code" in html
    assert ",</span></span></span></span></span> <code" in html


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("$\\frac{1$", "KaTeX parse error"),
        ("$$\na \\tag{1}\n$$\n\n$$\nb \\tag{1}\n$$", "Duplicate explicit target"),
        ("[(1.9)](#eq-1.9)", "eq-1.9"),
    ],
)
def test_bad_formula_warns(build, text, complaint):
    """Wrong TeX, a number used twice, a link to no formula: the build says where."""
    _, _, warnings = build(f"# A\n\n{text}\n")
    assert complaint in warnings
    assert "index.md" in warnings


def test_notes_take_their_kind(build):
    """A quote that opens with a known bold word is a box; other quotes stay quotes."""
    text = "# A\n\n> **Takeaway.** Yes.\n\n> **Bold** but no note.\n\n> Plain.\n"
    _, doctree, _ = build(text)
    kinds = [quote["classes"] for quote in doctree.findall(nodes.block_quote)]
    assert kinds == [["sm-lead", "sm-lead-takeaway"], [], []]


WORDS = "Some words that fill a line of text. " * 8
LIST = "- an item of a list\n- and one more of them\n\n"
SOURCE = (
    "> **Source.** A book of so many words that they need three lines at least.\n\n"
)


@pytest.mark.parametrize(
    ("text", "beside"),
    [
        (f"{WORDS}\n\n{SOURCE}", 1),
        (f"{WORDS}\n\n{SOURCE}{WORDS}", 1),
        (f"{WORDS}\n\nShort.\n\n{SOURCE}", 2),
        (f"{WORDS}\n\n{LIST}{SOURCE}", 1),
        (f"{WORDS}\n\n## B\n\nShort.\n\n{SOURCE}", 0),
        (f"{WORDS}\n\n```\ncode\n```\n\n{SOURCE}", 0),
        (f"{WORDS}\n\n{SOURCE.replace('Source', 'Pitfall')}", 0),
    ],
)
def test_a_source_stands_beside_text_as_tall(build, text, beside):
    """With as many blocks before it as that takes, and else where it was written."""
    html, doctree, warnings = build(f"# A\n\n{text}")
    joined = list(doctree.findall(notes.beside))
    assert [len(node[0]) for node in joined] == [beside] * bool(beside)
    assert html.count('<div class="sm-beside">') == len(joined)
    assert html.index("Some words") < html.index("A book of")
    assert not warnings


def test_description_is_one_line_cut_at_a_word(build):
    """The lead word is dropped, and a long paragraph ends at a word."""
    _, doctree, _ = build(f"# A\n\n> **Question.** Why?\n\n{'word ' * 60}\n")
    assert describe(doctree) == "Why?"
    _, doctree, _ = build(f"# A\n\n{'word ' * 60}\n")
    assert describe(doctree).endswith("word …")
    assert len(describe(doctree)) <= 162


@pytest.mark.parametrize(
    ("style", "kept"),
    [
        (".a{x:1}.b{y:2}", ".a{x:1}"),
        (".b,.a .c{y:2}", ".a .c{y:2}"),
        ("@media print{.b{z:3}}p{w:4}", "p{w:4}"),
        (".a:not(.b){x:1}", ".a:not(.b){x:1}"),
        ("/*! MIT v1.2 *//* .b */.a{x:1}", "/*! MIT v1.2 */.a{x:1}"),
        ("@font-face{font-family:F}.a{x:1}", "@font-face{font-family:F}.a{x:1}"),
        ("@font-face{src:url(../fontawesome/a.woff2)}.a{x:1}", ".a{x:1}"),
        ("@keyframes k{from{x:1}to{x:2}}", "@keyframes k{from{x:1}to{x:2}}"),
    ],
)
def test_unused_rules_go(style, kept):
    """Only rules that no page can match are dropped; licences stay."""
    assert trim.without_unused(style, {"a", "c"}) == kept


def test_a_page_links_all_styles_as_one():
    """A second build finds its own link, and gives it the new version."""
    links = [
        f'<link href="../_static/{name}?v=1" rel="stylesheet" />'
        for name in ("basic.css", "live/0123/live.css")
    ]
    apart = '<link media="print" rel="stylesheet" href="../_static/print.css" />'
    other = '<link rel="icon" href="../_static/mark.svg" />'
    page = trim.linked("".join([other, *links, apart]), "2")
    one = '<link rel="stylesheet" href="../_static/all.css?v={}"/>\n'
    assert page == other + one.format(2) + apart
    assert trim.linked(page, "3") == other + one.format(3) + apart
    with pytest.raises(ExtensionError, match=r"new\.css is not among"):
        trim.linked(links[0].replace("basic", "new"), "2")


def test_a_theme_that_has_changed_is_noticed(tmp_path):
    """Its slow part is cut, once; else the build says so."""
    script = tmp_path / "theme.js"
    slow = '"complete"===document.readyState?f():window.addEventListener("load",f)'
    script.write_text(f"a(),{slow}")
    trim.without_slow(script)
    cut = script.read_text()
    assert slow not in cut
    trim.without_slow(script)
    assert script.read_text() == cut
    script.write_text("a()")
    with pytest.raises(ExtensionError, match=r"theme\.js has changed"):
        trim.without_slow(script)


def test_chapters_and_figures_are_numbered(build_page):
    """From the file's name and the order; links take up the number."""
    text = (
        "# Rings\n\nSee [](#fig-a) and [](#fig-7.2).\n\n"
        "```{figure} a.png\n:name: fig-a\n:alt: a\n\nOne.\n```\n\n"
        "```{figure} b.png\n:alt: b\n\nTwo.\n```\n"
    )
    html, doctree, _ = build_page(text, name="chapters/07_rings")
    assert doctree.next_node(nodes.title).astext() == "07 Rings"
    assert "<title>07 Rings" in html
    captions = [caption.astext() for caption in doctree.findall(nodes.caption)]
    assert captions == ["Figure 7.1 One.", "Figure 7.2 Two."]
    assert ">Figure 7.1</a> and <a" in html
    assert 'id="fig-7-2"' in html
    assert 'href="#fig-7-2"' in html
    _, doctree, _ = build_page(text, name="exercises/07_rings")
    assert doctree.next_node(nodes.title).astext() == "07 Rings"
    assert next(doctree.findall(nodes.caption)).astext() == "One."


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("Of 64 GB in 2.5 µs.", "Of 64\xa0GB in 2.5\xa0µs."),
        (
            "At 197 TFLOPs/s, 819 GB/s; 96 GiB.",
            "197\xa0TFLOPs/s, 819\xa0GB/s; 96\xa0GiB",
        ),
        ("In 3 steps, 8 sums, 2 moves.", "In 3 steps, 8 sums, 2 moves."),
        ("As `64 GB`.", "64 GB"),
    ],
)
def test_a_number_keeps_its_unit(build, text, bound):
    """No line breaks between them; words and code are left as they are."""
    _, doctree, _ = build(f"# A\n\n{text}\n")
    assert bound in doctree.next_node(nodes.paragraph).astext()


def test_a_formula_keeps_its_unit(build):
    """The unit and the stop after it move into the formula's last part."""
    html, *_ = build("# A\n\nIt has $2^{30}$ B, and $n$ steps.\n")
    assert '<span class="sm-with"> B,</span>' in html
    assert html.count("sm-with") == 1
