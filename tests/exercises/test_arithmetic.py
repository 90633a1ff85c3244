"""Arithmetic in answers: it means what Python means, its units hold, and it ends."""

import ast
import inspect

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shardmath import exercises
from shardmath.base.units import show
from shardmath.exercises import answers
from shardmath.exercises.kinds import Number
from shardmath.exercises.kinds.quantity import quantity

NUMBERS = {q: r for q, r in answers.questions().items() if isinstance(r, Number)}


# As Python computes -------------------------------------------------------------------

literals = st.one_of(
    st.integers(0, 10**6).flatmap(lambda n: st.sampled_from([f"{n}", f"{n:_}"])),
    st.floats(1e-6, 1e6).flatmap(lambda x: st.sampled_from([repr(x), f"{x:.3e}"])),
)
raised = st.tuples(literals, st.integers(-4, 4), st.integers(0, 2)).map(
    lambda parts: "{} ** {} ** {}".format(*parts) if parts[1] else parts[0]
)
expressions = st.recursive(
    literals | raised,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from("+-*/"), inner).map(" ".join),
        st.tuples(inner, st.sampled_from(["+", "-", "*", "/", "//"]), inner).map(
            "".join
        ),
        inner.map("({})".format),
        inner.map("-{}".format),
    ),
    max_leaves=8,
)
TYPED = str.maketrans({"*": "×", "-": "−"})


@given(expressions)
@example("-2**2").via("a sign is weaker than a power")
@example("8 / 4 / 2 - 1 - 1").via("from the left")
@example("2**-1").via("a sign in a power")
@example("2**3**2").via("powers from the right")
@example("7 // 2 * 2").via("as strong as any quotient")
def test_arithmetic_is_pythons(source):
    """To the last bit, with Python's signs and with those of a book."""
    try:
        wanted = float(eval(source, {"__builtins__": {}}))
    except ZeroDivisionError:
        with pytest.raises(ValueError, match="divides by zero"):
            quantity(source, "")
        return
    for typed in (source, source.replace("**", "^").translate(TYPED)):
        assert quantity(typed, "").value == wanted


@given(st.integers(0, 10**15), st.floats(1e-6, 1e6))
def test_thousands_are_parted_and_raised_signs_read(n, x):
    assert quantity(f"{n:,} · 10²", "").value == float(n * 10**2)
    assert quantity(f"{x!r} × 10⁻³", "").value == x * 10**-3


# Units --------------------------------------------------------------------------------

SIZES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "GiB": 2**30}
TIMES = {"s": 1, "ms": 1e-3, "µs": 1e-6, "us": 1e-6, "ns": 1e-9}
sizes, times = st.sampled_from(sorted(SIZES)), st.sampled_from(sorted(TIMES))
floats = st.floats(1e-3, 1e3).map("{:.6g}".format)


@given(floats, sizes, floats, sizes, times, floats, times)
def test_units_work_out_whatever_their_prefixes(a, A, b, B, t, c, T):
    """Bytes over bytes/s are seconds; seconds may be added, and nothing else."""
    sent = float(a) * SIZES[A] / (float(b) * SIZES[B] / TIMES[t])
    said = f"{a} {A} / {b} {B}/{t}"
    for text, wanted in ((said, sent), (f"({said})/2", sent / 2)):
        wanted += float(c) * TIMES[T]
        assert quantity(f"{text} + {c}{T}", "s").value == pytest.approx(wanted)
    for text, unit in ((said, "bytes"), (said, ""), (f"{said} + {c} {A}", "s")):
        with pytest.raises(ValueError, match="give a"):
            quantity(text, unit)


@given(
    value=st.floats(1e-9, 1e20),
    unit=st.sampled_from(sorted({record.unit for record in NUMBERS.values()})),
)
def test_what_is_shown_can_be_computed_with(value, unit):
    """What a cell printed, doubled: the same unit comes out."""
    shown = show(value, unit, digits=6)
    twice = quantity(f"2 * {shown}", unit).value
    assert twice == pytest.approx(2 * value, rel=1e-5)
    assert quantity(f"{shown} + {shown}", unit).value == twice


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("2*512*4096*16384", "FLOPs", 2 * 512 * 4096 * 16384),
        ("2*512 / 197 T", "s", 2 * 512 / 197e12),
        ("68.7G", "FLOPs", 68.7e9),
        ("4Gi", "bytes", 2**32),
        ("2e12 / 989 TFLOPs/s", "s", 2e12 / 989e12),  # a number brings the FLOPs
        ("7 * 1 µs + 4e6 / 50 GB/s", "s", 87e-6),
        ("3 GB / 100 / 2 tokens", "bytes", 15e6),  # and here the tokens
        ("640 GB / 80 GB", "GPUs", 8),  # counts need no unit
        ("4096 / 2 s", "tokens/s", 2048),
        ("1000 / 2 GHz", "s", 5e-7),
        ("3 / s", "Hz", 3),
        ("40% * 459 TFLOPS", "FLOPs/s", 0.4 * 459e12),
        ("(1 + 3) GiB", "bytes", 2**32),
        ("2^30 B", "bytes", 2**30),
        ("2³⁰ bytes", "bytes", 2**30),
        ("((3 s)**2 * 4)**0.5", "s", 6),
        ("8 x 8 x 16", "chips", 1024),
        ("16x20x28", "chips", 16 * 20 * 28),
        ("2.5 million tokens", "tokens", 2.5e6),
        ("6 TFLOPs / (2 GFLOPs per second)", "s", 3000),
        ("10 ÷ 4", "", 2.5),
        ("2 days + 12 h", "s", 2.5 * 86_400),
        ("3 days", "days", 3),
        ("28.4 h", "days", 28.4 / 24),
        ("1.18 Days", "days", 1.18),
        ("28 Hours", "days", 28 / 24),
        ("28 HRS", "days", 28 / 24),
        ("5 Seconds", "s", 5),
        ("5 MBytes", "bytes", 5e6),
        ("102,337 s", "days", 102_337 / 86_400),
        ("1.184 d", "days", 1.184),
        ("1 day + 4.4 hrs", "days", 28.4 / 24),
        ("2e12 / 1e9 / 86_400", "days", 2e3 / 86_400),  # a number is in days
        ("6.5 d", "s", 6.5 * 86_400),
        ("1 week", "days", 7),
        ("14 GPUs", "chips", 14),
        ("1 GPU", "chips", 1),
        ("14 H100", "chips", 14),
        ("8 GPUS", "chips", 8),
        ("8 TPUS", "GPUs", 8),
        ("8 h100s", "chips", 8),
        ("8xH100", "chips", 8),
        ("2 * 8 x H100", "GPUs", 16),
        ("8x GPUs + 4", "chips", 12),
        ("8 H100 GPUs", "chips", 8),
        ("64 v5p chips", "chips", 64),
        ("4x4 v5e", "chips", 16),
        ("64 Trillium", "chips", 64),
        ("640 GB / 80 GB per H100 GPU", "chips", 8),
        ("10 chips", "GPUs", 10),
        ("10 H100s", "GPUs", 10),
        ("80 TPUs", "chips", 80),
        ("640 GB / (80 GB/GPU)", "chips", 8),
        ("1.6x", "times", 1.6),
        ("1.6 times", "times", 1.6),
        ("1.6 ×", "", 1.6),
        ("(8/5)x", "", 1.6),
        ("12.1 bn", "params", 12.1e9),
        ("12.1bn", "", 12.1e9),
        ("$16.2", "dollars", 16.2),
        ("$ 2.50 * 6", "dollars", 15),
        ("$1.5 million", "dollars", 1.5e6),
        ("16.2 USD", "dollars", 16.2),
        ("$1.5e6", "dollars", 1.5e6),
        ("$1.5m", "dollars", 1.5e6),
        ("$16K", "dollars", 16e3),
        ("$1.5B * 2", "dollars", 3e9),
        ("$1.5Million", "dollars", 1.5e6),
        ("16$", "dollars", 16),
        ("1.5M$ + $ 500k", "dollars", 2e6),
        ("$1,500.25 USD", "dollars", 1500.25),
        ("$5.33/h", "dollars/hour", 5.33),
        ("5.33 dollars/h", "dollars/hour", 5.33),
        ("$5.33 per hour", "dollars/hour", 5.33),
        ("5.33 dollars an hour", "dollars/hour", 5.33),
        ("5.33 per Hour", "dollars/hour", 5.33),
        ("5.33 $/hr", "dollars/hour", 5.33),
        ("$5.33", "dollars/hour", 5.33),
        ("5.33", "dollars/hour", 5.33),
        ("$4/h * 143 µs / 35 µs", "dollars/hour", 4 * 143 / 35),
        ("$48 a day", "dollars/hour", 2),
        ("5 bn", "s", 5e9),
        ("5 mn", "params", 5e6),
        ("2X3", "chips", 6),
        ("90 min", "s", 5400),
        ("2 * 50 GBps", "bytes/s", 100e9),
        ("102.4 Tb/s", "bytes/s", 12.8e12),
        ("400 Gbps", "bytes/s", 50e9),
        ("8 b", "bytes", 1),
        ("8 Gibit", "bytes", 2**30),
        ("4 GB / 400 Gbits/s", "s", 0.08),
        ("19.51B", "params", 19.51e9),
        ("5.873 B params", "params", 5.873e9),
        ("2 * 8b", "params", 16e9),
        ("15.6B tokens", "tokens", 15.6e9),
        ("180 GiB / 16 B", "params", 180 * 2**30 / 16),
        ("180 GiB / (16 B/param)", "params", 180 * 2**30 / 16),
        ("8B", "bytes", 8),
        ("ceil(848 GB / 80 GiB)", "GPUs", 10),
        ("math.ceil(9.2) + floor(9.8)", "", 19),
        ("int(7.9) * round(2.4)", "", 14),
        ("max(1 ms, 20 µs, 0.5 ms)", "s", 1e-3),
        ("min(8 * 50 GB/s, 900 GB/s)", "bytes/s", 400e9),
        ("max(2, 3) / min(4, 5)", "", 0.75),
        ("2 * max(1,024, 7)", "", 2048),
        ("sqrt(16) + log2(8) ** 2", "", 13),
        ("Sqrt( (3 s)**2 )", "s", 3),
        ("5 min", "s", 300),  # of minutes
    ],
)
def test_arithmetic_with_units(text, unit, value):
    assert quantity(text, unit).value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize(
    ("text", "unit", "why"),
    [
        ("4 GB / 2", "s", "comes out in bytes, not in s"),
        ("2 * 459 TFLOPs", "FLOPs/s", "comes out in FLOPs, not in FLOPs/s"),
        ("10/2 GB", "bytes", "comes out in 1/byte"),  # (10/2) GB, or 10/(2 GB)?
        ("459 TFLOPs/s / 2.765 TB/s", "tokens", "comes out in FLOPs/byte, not in tok"),
        ("2 * 50 GB/s", "bytes", "comes out in bytes/s, not in bytes"),  # 2 links?
        ("160 MB / 2 tokens", "bytes", "comes out in bytes/token, not in bytes"),
        ("(1 s)**10", "s", "has a power of s that has no meaning"),
        ("5 mB", "bytes", "has 'mB' in it, which isn't a unit here"),
        ("640 GB / 80 GB", "s", "comes out as a plain number, not in s"),
        ("1 s", "", "comes out in s, not as a plain number"),
        ("1.5 ms + 3", "s", "adds s and plain numbers"),
        ("1 ms + 3 MB", "s", "adds s and bytes"),
        ("8 b", "chips", "comes out in bytes, not in chips"),
        ("5 mb", "bytes", "has 'mb' in it, which isn't a unit here"),
        ("floor(2.5, 1)", "", r"has 2 numbers in floor\(\), which takes one"),
        ("max(1,024)", "", r"has one number in max\(\): put a space after the comma"),
        ("max(1 s, 3)", "s", "compares s and plain numbers"),
        ("ceil(1.5 GB)", "bytes", r"has bytes in ceil\(\), which takes a number"),
        ("sqrt(4 GB)", "bytes", "has a power of bytes that has no meaning"),
        ("sqrt(-4)", "", "takes a root of a negative number"),
        ("log2(0)", "", "takes the logarithm of a number that is not above zero"),
        ("ceil 3.5", "", "has 'ceil' where a number was expected"),
        ("ceil(3.5", "", r"has a \( that is not closed"),
        ("2 ceil(3.5)", "", "has no operator before 'ceil'"),
        ("(1, 2)", "", "has a comma that does not separate thousands"),
        ("log(8)", "", "has 'log' where a number was expected"),
        ("math.pi", "", "is not a number"),
        ("math.gcd(8, 12)", "", "has 'gcd' where a number was expected"),
        ("5 mn", "s", "has 'mn' in it, which isn't a unit here"),  # minutes?
        ("5 mn", "days", "has 'mn' in it, which isn't a unit here"),
        ("3 D", "days", "has 'D' in it, which isn't a unit here"),
        ("$5/h", "dollars", "comes out in dollars/s, not in dollars"),
        ("5 h", "dollars/hour", "comes out in s, not in dollars/hour"),
        ("5%", "dollars/hour", "is a percentage, not in dollars/hour"),
        ("$5 Mio", "dollars", "has 'Mio' where an operator was expected"),
        ("8xH100", "tokens", "has 'H100' in it, which isn't a unit here"),
        ("8 v3", "chips", "has 'v' in it, which isn't a unit here"),  # of two cores
        ("14 H100 GPUs", "hosts", "has 'H100' in it, which isn't a unit here"),
        ("5 m", "s", "has 'm' in it, which has several meanings"),
        ("8B", "chips", "comes out in bytes, not in chips"),  # nobody has so many
        ("8 GB", "params", "comes out in bytes, not in params"),
        ("240 chips", "tokens", "has 'chips' in it, which isn't a unit here"),
        ("28 h", "tokens", "comes out in s, not in tokens"),
        ("3 GB", "days", "comes out in bytes, not in days"),
        ("1 day + 4", "days", "adds s and plain numbers"),
        ("14 GPUs", "hosts", "has 'GPUs' in it, which isn't a unit here"),
        ("14 nodes", "GPUs", "has 'nodes' in it, which isn't a unit here"),
        ("14 devices", "chips", "has 'devices' in it, which isn't a unit here"),
        ("14 GB200", "chips", "has no operator before '200'"),  # of two each
        ("14 H100", "tokens", "has 'H100' in it, which isn't a unit here"),
        ("1.6x", "s", "has 'x' in it, which isn't a unit here"),
        ("2 *", "", "is incomplete"),
        ("$16", "s", r"has '\$' in it"),
        ("1.5 gb", "bytes", r"has 'gb' in it, which isn't a unit here \(GB is"),
        ("1.75 ghz", "Hz", r"has 'ghz' in it, which isn't a unit here \(Ghz is"),
        ("2 GB^2", "bytes", "raises a unit to a power without parentheses"),
        ("2 ** (3 B)", "bytes", "has an exponent in bytes"),
        ("(2 s)**0.5", "s", "has a power of s that has no meaning"),
        ("7 s // 2", "s", "has a unit next to //"),
        ("1/0", "", "divides by zero"),
        ("0**-1", "", "divides by zero"),
        ("1/(2-2)", "", "divides by zero"),
        ("(-8)**0.5", "", "takes a root of a negative number"),
        ("9**9**9**9", "", "is too large for a float"),
        ("-9**9**9**9", "", "is too large for a float"),
        ("1e308*10", "", "is too large for a float"),
        ("1e999", "", "is too large for a float"),
        ("1e308 dollars/s", "dollars/hour", "is too large for a float"),
        ("1" * 10**5, "dollars", "has more than 300 characters"),
        ("1" * 310, "", "has more than 300 characters"),
        ("nan", "", "is not a number"),
        ("inf + 1", "", "has 'inf' where a number was expected"),
        ("1,5 * 2", "", r"has a comma that does not separate thousands \(write 2.5"),
        ("2(3)", "", r"has no operator before '\('"),
        ("16 384", "", "has no operator before '384'"),
        ("(2", "", r"has a \( that is not closed"),
        ("2)", "", r"has '\)' where an operator was expected"),
        ("2*", "", "is incomplete"),
        ("2**", "", "is incomplete"),
        ("* 2", "", r"has '\*' where a number was expected"),
        ("2 GB per", "bytes", "has 'per' where an operator was expected"),
        ("2; 3", "", "has ';' in it"),
        ("1__0", "", "has '1__0' in it"),
        ("٤٢", "", "has '٤' in it"),
        ("2 .__class__", "", "has '.' in it"),
        ("sum(1)", "", "has 'sum' where a number was expected"),
        ("(" * 200 + "1" + ")" * 99, "", "is nested more than 40 levels deep"),
        ("2**" * 90 + "1", "", "is nested more than 40 levels deep"),
        ("(1)" * 10**6, "", "has more than 300 characters"),
    ],
)
def test_what_is_no_answer_is_quoted_with_the_reason(text, unit, why):
    """Each sentence begins with what was typed and ends with what would be valid."""
    with pytest.raises(ValueError, match=f"^'.{{1,41}}' {why}.*: give a") as refused:
        quantity(text, unit)
    assert len(str(refused.value)) < 200


@given(st.text("0123456789.,eE+-*/^() xµ%GBKMTsFLOPkbits×÷²³⁻−", max_size=40))
def test_whatever_is_typed_gets_a_number_or_a_sentence(text):
    said = exercises.examine(NUMBERS["01.2"], text)
    if said.verdict == "invalid":
        assert ": give a number in bytes" in said.message
    else:
        assert said.verdict in ("correct", "wrong", "todo")


# What the reader is told --------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("2*512*4096*16384", "2*512*4096*16384 = 68.72 GFLOPs"),
        ("68.7 G", "68.7 GFLOPs"),
        ("68.7GFLOPs", "68.7 GFLOPs"),
        ("64 Gi", "64 Gi = 68.72 GFLOPs"),
        ("68.7 billion", "68.7 billion = 68.7 GFLOPs"),
        ("68_719_476_736", "68.72 GFLOPs"),
        ("6.87e10", "68.7 GFLOPs"),
        (2 * 512 * 4096 * 16384, "68.72 GFLOPs"),
    ],
)
def test_a_verdict_says_what_was_read(typed, said):
    """Where there was something to compute or to convert, and only there."""
    found = exercises.examine(NUMBERS["01.1"], typed)
    assert (found.verdict, found.message) == ("correct", said)


def test_a_wrong_line_of_arithmetic_is_shown_with_its_slip():
    told = exercises.judge_number("01.1", "512*4096*16384")
    assert told["message"].startswith("512*4096*16384 = 34.36 GFLOPs. ")
    assert told["slip"] == "multiply-add"


SECONDS = "102337 s / 86_400"
TYPICAL = "8.66e22 FLOPs / (2048*0.45*918 TFLOPs/s)"


@pytest.mark.parametrize("again", [SECONDS, f"{TYPICAL} / 86400", "28.4 h / 24"])
def test_a_unit_turned_by_hand_too_is_no_wrong_answer(again):
    said = exercises.examine(NUMBERS["07.14"], again)
    assert (said.verdict, said.slip) == ("invalid", "")
    assert said.message.startswith(f"{again} = ")
    assert said.message.endswith(
        " days. You typed a unit, so your answer is already converted to days."
    )


@pytest.mark.parametrize(
    ("typed", "verdict"),
    [(TYPICAL, "correct"), ("102337 / 86400", "correct"), ("0.0493 days", "wrong")],
)
def test_what_was_turned_once_or_said_in_days_is_judged(typed, verdict):
    assert exercises.examine(NUMBERS["07.14"], typed).verdict == verdict


class Inlined(ast.NodeTransformer):
    """Names by what they were given; what a chip's record holds as a number."""

    def __init__(self, setup, known):
        self.setup, self.known = setup, known

    def visit_Name(self, node):
        return self.known.get(node.id, node)

    def visit_Attribute(self, node):
        node = self.generic_visit(node)
        try:
            return ast.Constant(eval(ast.unparse(node), self.setup) + 0)
        except TypeError:
            return node  # a function, or a record on the way to its number

    def visit_Subscript(self, node):
        return self.visit_Attribute(node)

    def visit_Call(self, node):
        of_a_chip = ast.unparse(node.func).endswith((".fact", ".intensity"))
        return self.visit_Attribute(node) if of_a_chip else self.generic_visit(node)


def in_one_line(record):
    """The worked solution as one line of arithmetic; "" where it takes more."""
    setup, known = {}, {}
    exec(inspect.cleandoc(answers.heading(record.id[:2]).setup), setup)
    for step in ast.parse(record.code).body:
        match step:
            case ast.Import() | ast.ImportFrom():
                exec(ast.unparse(step), setup)
            case ast.Assign(targets=[ast.Tuple(names)], value=ast.Tuple(values)):
                given = [Inlined(setup, known).visit(value) for value in values]
                known |= zip([name.id for name in names], given, strict=True)
            case ast.Assign(targets=[ast.Name(name)], value=value):
                known[name] = Inlined(setup, known).visit(value)
            case _:
                return ""
    line = known[record.answer]
    called = [part.func for part in ast.walk(line) if isinstance(part, ast.Call)]
    is_more = any(ast.unparse(function) not in FUNCTIONS for function in called)
    return "" if is_more else ast.unparse(line)


FUNCTIONS = {"max", "min", "int", "round", "math.ceil", "math.floor", "math.sqrt"}


def test_worked_solutions_can_be_typed_in_one_line():
    """All but nine: those search, loop, or call a function that the field lacks."""
    lines = {q: line for q, r in NUMBERS.items() if (line := in_one_line(r))}
    loops = {"18.11", "21.6", "22.11", "23.8"}
    functions = {"23.3", "23.5"}  # a logarithm, and the error function
    searches = {"03.15", "12.2", "14.11"}
    assert NUMBERS.keys() - lines.keys() == searches | loops | functions
    for question, line in lines.items():
        found = exercises.examine(NUMBERS[question], line)
        assert found.verdict == "correct", (question, line, found.message)
