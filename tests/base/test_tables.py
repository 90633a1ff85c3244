"""Tables that are declared: units, headings, missing values, mistakes that get out."""

import numpy as np
import pytest

from shardmath.base import facts
from shardmath.base.tables import Absent, compare, deviation, ratio, table
from shardmath.hardware import chips
from shardmath.hardware.chips import H100, TPU_V5E


def column(shown, heading):
    """The cells under `heading`."""
    return [row[shown.header.index(heading)] for row in shown.rows]


def test_a_fact_brings_its_unit_and_a_list_of_names_its_words():
    shown = compare([TPU_V5E, H100], ["name", "year", "clock", "onchip_bytes"])
    assert shown.header == (
        "name",
        "Year of release",
        "Clock",
        "VMEM capacity / SMEM capacity",
    )
    assert shown.rows[0] == ("TPU v5e", "2023", "1.5 GHz", "128 MiB")


def test_functions_units_digits_and_formats():
    columns = {
        "chip": "name",
        "peak": (lambda c: c.flops["bf16"], "FLOPs/s", 4),
        "of 1 PFLOPs/s": (lambda c: c.flops["bf16"] / 1e15, ".1%"),
        "balance": (lambda c: c.intensity(), "FLOPs/byte"),
    }
    shown = compare([H100], columns)
    assert shown.header == ("chip", "peak", "of 1 PFLOPs/s", "balance, FLOPs/byte")
    assert shown.rows == (("H100", "989.4 TFLOPs/s", "98.9%", "295"),)


def test_labels_stand_in_front_and_tuples_are_several_arguments():
    work = {("a", 1024): (2, 3), ("b", 8): (4, 5)}
    shown = compare(work, {"sum": lambda x, y: x + y}, of=("name", "size"))
    assert shown.header == ("name", "size", "sum")
    assert shown.rows == (("a", "1,024", "5"), ("b", "8", "9"))
    assert shown.numeric == (False, True, True)


@pytest.mark.parametrize("of", ["one", ("a", "b", "c")])
def test_labels_need_a_heading_each(of):
    with pytest.raises(ValueError, match="must head 2 columns of labels"):
        compare({("a", 1): 2}, {"x": lambda x: x}, of=of)


def test_labels_of_unequal_parts_are_refused():
    with pytest.raises(
        ValueError, match=r"\('a', 1\) and \('b',\) must have equally many"
    ):
        compare({("a", 1): 2, "b": 3}, {"x": lambda x: x}, of=("name", "size"))


def test_a_value_that_nobody_published_is_a_dash_in_its_ratios_too():
    columns = {
        "int4": "flops.int4",
        "int8": "flops.int8",
        "gain": ratio("int4", "int8", ".1f"),
        "measured": lambda c: {"TPU v5e": 1}.get(c.name),
        "lanes": lambda c: c.tmem_bytes,
    }
    shown = compare([TPU_V5E, H100], columns)
    assert column(shown, "gain") == ["2.0", "–"]
    assert column(shown, "measured") == ["1", "–"]
    assert column(shown, "lanes") == ["–", "–"]
    assert shown.numeric == (True,) * 5


@pytest.mark.parametrize(
    ("read", "error"),
    [
        (lambda c: {}["x"], KeyError),
        (lambda c: c.nothing, AttributeError),
        (lambda c: 1 / 0, ZeroDivisionError),
        (lambda c: chips.find("no such chip"), ValueError),
        ("hbm_bites", AttributeError),
    ],
)
def test_a_mistake_in_a_column_is_not_shown_as_missing(read, error):
    with pytest.raises(error):
        compare([H100], {"x": read})


def test_rows_may_differ_in_their_unit():
    answers = {"rate": (2e9, 1e9, "bytes/s"), "time": (1e-3, 2e-3, "s")}
    columns = {
        "computed": lambda a, b, u: (a, u),
        "published": lambda a, b, u: (b, u),
        "ratio": ratio("computed", "published", ".3f"),
        "off": deviation("computed", "published"),
    }
    assert compare(answers, columns).rows == (
        ("rate", "2 GB/s", "1 GB/s", "2.000", "+100.0%"),
        ("time", "1 ms", "2 ms", "0.500", "-50.0%"),
    )


def test_transposed_has_a_row_for_each_quantity():
    shown = compare([H100, TPU_V5E], {"": "name", "bf16": "flops.bf16"}).transposed
    assert shown.header == ("", "H100", "TPU v5e")
    assert shown.rows == (("bf16", "989 TFLOPs/s", "197 TFLOPs/s"),)
    assert shown.numeric == (False, True, True)
    assert compare([H100], ["name", "cores"]).transposed.transposed.rows == (
        ("H100", "132"),
    )


def test_numbers_of_other_libraries_are_numbers():
    """NumPy scalars are shown like Python's, and set to the right."""
    shown = compare(
        [np.int32(2048), np.float32(0.25)],
        {"x": lambda x: x, "share": (lambda x: x, ".0%")},
    )
    assert column(shown, "x") == ["2,048", "0.25"]
    assert shown.numeric == (True, True)


def test_text_is_set_to_the_left_even_where_the_host_would_not():
    """Jupyter sets every cell to the right unless told otherwise."""
    html = compare([H100], {"chip": "name", "SMs": "cores"})._repr_html_()
    assert '<td style="text-align: left">H100</td>' in html
    assert '<td style="text-align: right">132</td>' in html
    assert 'style="text-align: left"' in table(["a"], [("x",)])._repr_html_()


def test_a_text_that_begins_with_a_digit_is_text():
    assert compare([8], {"tile": lambda n: f"{n} × {n}"}).numeric == (False,)


@pytest.mark.parametrize(
    ("things", "columns", "message"),
    [
        ([], {"x": "name"}, "at least one"),
        ([H100], {}, "at least one"),
        ([H100], {"x": 8}, "column 'x' = 8: must be a name, a function"),
        ([H100], {"x": ("name", "", 3, 4)}, "column 'x'"),
        ([H100], {"x": ratio("a", "b")}, "no column 'a' to the left"),
        (
            [1],
            {"a": lambda n: n, "b": lambda n: 0, "c": ratio("a", "b")},
            "column 'b' has a 0",
        ),
    ],
)
def test_a_wrong_declaration_says_what_is_wrong(things, columns, message):
    with pytest.raises(ValueError, match=message):
        compare(things, columns)


def test_text_with_a_unit_is_refused():
    with pytest.raises(ValueError, match="'H100': must be a number"):
        compare([H100], {"x": (lambda c: c.name, "s")})


def test_another_source_says_what_it_says():
    fact = TPU_V5E.fact("link_bandwidth")
    assert fact.said("book") == 45e9
    assert fact.said(fact.source.key) == fact.value
    with pytest.raises(facts.Unpublished, match=r"known: gcp_v5e, book"):
        fact.said("jax")
    assert issubclass(facts.Unpublished, Absent)


def test_every_fact_is_an_attribute_and_a_missing_one_says_what_is_published():
    assert (H100.cores, H100.lanes) == (132, 128)
    assert "clock" in dir(H100)
    with pytest.raises(
        ValueError, match=r"H100: no source states 'mxus'; known: .*cores"
    ):
        _ = H100.mxus
    with pytest.raises(AttributeError, match="a chip has no 'mxu'"):
        _ = H100.mxu
    with pytest.raises(AttributeError, match="no fact is called 'flops'"):
        H100.cell("flops")


def test_the_vocabulary_is_the_facts_of_the_records():
    """No word without a value, no value without a word."""
    used = {name.partition(".")[0] for chip in chips.ALL for name in chip.facts}
    assert used == set(facts.VOCABULARY)
