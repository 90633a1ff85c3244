"""Records of accelerators, held by a second reading of their sources."""

import tomllib
from pathlib import Path

import pytest

from shardmath.hardware import chips

READINGS = tomllib.loads(
    (Path(__file__).parents[1] / "data/chip_readings.toml").read_text("utf-8")
)
ROUNDED = 0.005  # sources round to three digits


def values(reading: dict, below: str = "") -> dict[str, float]:
    """The numbers of one chip by the names of their facts."""
    found = {}
    for name, value in reading.items():
        if name == "flops":
            found |= values(value, "flops.")
        elif name != "differs":
            found[below + name] = value
    return found


def recorded(chip: chips.Chip, name: str) -> float:
    """What the record has; a capacity in GiB, as which every source is read."""
    if name == "hbm_gb":
        return chip.hbm_bytes / 2**30
    return chip.fact(name).value


EACH = [
    (key, name, value)
    for key, reading in READINGS.items()
    for name, value in values(reading).items()
]


@pytest.mark.parametrize(("key", "name", "value"), EACH)
def test_a_second_reading_gives_the_value_of_the_record(key, name, value):
    differs = READINGS[key].get("differs", {}).get(name, {})
    expected = differs.get("record", value)
    assert recorded(chips.CHIPS[key], name) == pytest.approx(expected, rel=ROUNDED)


def test_readings_that_differ_do_so_and_have_a_reason():
    for key, reading in READINGS.items():
        for name, differs in reading.get("differs", {}).items():
            assert differs["reason"]
            apart = differs["record"] / values(reading)[name] - 1
            assert abs(apart) > ROUNDED, f"{key}: {name} no longer differs"


def test_every_chip_has_a_reading_of_its_peak_and_its_memory():
    """Three bandwidths of the HBM were read nowhere but where the record read them."""
    assert READINGS.keys() == chips.CHIPS.keys()
    for key, reading in READINGS.items():
        if chips.CHIPS[key].without_hbm:
            assert {"onchip_bytes", "onchip_bandwidth"} <= reading.keys(), key
            continue
        wanted = {"hbm_gb", "flops"}
        if key not in ("a100_40gb", "a100_80gb", "h800"):
            wanted.add("hbm_bandwidth")
        assert wanted <= reading.keys(), key
    assert len(EACH) > 190
