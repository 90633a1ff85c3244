"""The accelerator records: every value sourced, plausible, and at odds with nothing."""

import datetime
import itertools
import math
import re

import numpy as np
import pytest

from shardmath.base.tables import Absent, compare
from shardmath.hardware import chips, roofline
from shardmath.hardware.networks import nvswitch
from shardmath.inference import Formats, Server, alone, smallest_layout
from shardmath.transformer import LLAMA_3_8B

EVERY_CHIP = pytest.mark.parametrize("chip", chips.ALL, ids=lambda chip: chip.id)
FACTS = [(chip, name, fact) for chip in chips.ALL for name, fact in chip.facts.items()]
UNITS = {"KiB": 2**10, "MiB": 2**20, "GB/s": 1e9, "TB/s": 1e12, "PFLOPS": 1e15}


def numbers(pattern, text):
    """The groups of `pattern` in `text` as floats, units already multiplied in."""
    if not (found := re.search(pattern, text)):
        return None
    return [UNITS[g] if g in UNITS else float(g) for g in found.groups()]


# ------------------------------------------------------------------- each value


def test_there_are_36_chips_with_the_facts_a_roofline_needs():
    """Two have no HBM, and of one of these nobody states the dense peak."""
    assert len(chips.ALL) == 36
    assert [c.name for c in chips.ALL if c.without_hbm] == ["Groq LPU", "WSE-3"]
    for chip in chips.ALL:
        assert bool(chip.flops) == (chip is not chips.WSE_3)
        if chip.without_hbm:
            assert not [name for name in chip.facts if name.startswith("hbm")]
            assert chip.memory_bandwidth == chip.onchip_bandwidth > 1e13
            continue
        assert chip.hbm_bytes > 0
        assert chip.memory_bandwidth == chip.hbm_bandwidth > 0


@pytest.mark.parametrize("chip", [chips.GROQ_LPU, chips.WSE_3], ids=lambda c: c.id)
@pytest.mark.parametrize("name", ["hbm_bytes", "memory_bytes", "hbm_bandwidth"])
def test_hbm_of_a_chip_without_is_refused_in_a_sentence(chip, name):
    """To say that no source states it would send the reader to look for it."""
    with pytest.raises(
        Absent, match=r"has no HBM, so no 'hbm_.*; all of its memory is"
    ):
        getattr(chip, name)
    with pytest.raises(ValueError, match="no fact is called 'hbm_bandwith'"):
        chip.fact("hbm_bandwith")


@pytest.mark.parametrize(
    "ask",
    [
        lambda chip: roofline.read(1e9, chip),
        lambda chip: roofline.roof(chip, "fp16"),
        lambda chip: roofline.matmul(1, 2, 3, chip, "fp16"),
        lambda chip: roofline.critical_batch(chip, precision="fp16"),
        lambda chip: chip.intensity("fp16"),
        lambda chip: Server(LLAMA_3_8B, alone(chip)).decode(1, 1000),
        lambda chip: smallest_layout(LLAMA_3_8B, chip, Formats()),
    ],
)
def test_what_needs_hbm_says_that_a_chip_has_none(ask):
    with pytest.raises(Absent, match="Groq LPU has no HBM"):
        ask(chips.GROQ_LPU)


def test_sources_are_complete_used_and_never_memory():
    used = {f.source.key for *_, f in FACTS}
    used |= {source.key for *_, f in FACTS for _, source in f.disagrees}
    assert used == set(chips.SOURCES)
    for key, source in chips.SOURCES.items():
        assert source.key == key
        assert source.kind in {"vendor", "vendor-code", "paper", "secondary"}, key
        assert source.title
        assert re.match(r"https?://\S+$", source.url), key
        datetime.date.fromisoformat(source.read)


def test_values_are_finite_positive_and_disagree_only_where_they_differ():
    for chip, name, fact in FACTS:
        assert math.isfinite(fact.value), (chip.id, name)
        assert fact.value > 0, (chip.id, name)
        for value, _ in fact.disagrees:
            assert math.isfinite(value), (chip.id, name)
            assert value > 0, (chip.id, name)
            assert value != fact.value, (chip.id, name)


def test_every_chip_has_its_constant_and_every_constant_its_chip():
    constants = {k: v for k, v in vars(chips).items() if isinstance(v, chips.Chip)}
    assert {chip.id: chip for chip in chips.ALL} == {**chips.CHIPS}
    assert {name.lower(): chip.id for name, chip in constants.items()} == {
        chip.id: chip.id for chip in chips.ALL
    }


@EVERY_CHIP
def test_narrower_formats_are_never_slower(chip):
    """Except int8, which NVIDIA cut after B200: then the note says so."""
    for family in ("fp32 tf32 bf16 fp8 fp6 fp4", "bf16 int8 int4"):
        known = [p for p in family.split() if p in chip.flops]
        for wide, narrow in itertools.pairwise(known):
            slower = chip.flops[narrow] < chip.flops[wide]
            assert slower == ("cut" in chip.fact(f"flops.{narrow}").note), narrow
    if {"bf16", "fp16"} <= set(chip.flops):
        assert chip.flops["bf16"] == chip.flops["fp16"]


@EVERY_CHIP
def test_measured_rates_are_below_the_peak_and_say_what_they_were_measured_with(chip):
    for precision, rate in chip.achieved.items():
        assert 0.4 < rate / chip.flops[precision] < 1, precision
        note = chip.fact(f"achieved.{precision}").note
        assert "torch" in note or "hipBLASLt" in note


def test_ten_chips_have_a_measured_bf16_rate():
    assert sum("bf16" in chip.achieved for chip in chips.ALL) == 10


# ------------------------------------------------------------------------ capacities


@EVERY_CHIP
def test_capacities_are_whole_in_binary_units_and_say_how_gb_was_read(chip):
    """HBM in whole GiB; the note has GiB, whatever the source prints."""
    if not chip.without_hbm:
        fact = chip.fact("hbm_bytes")
        assert fact.value % 2**30 == 0
        assert "GiB" in fact.note
    for name in ("onchip_bytes", "registers_bytes", "l2_bytes", "cmem_bytes"):
        if name in chip.facts:
            assert chip.fact(name).value % 2**10 == 0, name


def test_capacities_compare_in_one_unit():
    """192 GiB over 32 GiB; as gigabytes of two kinds it came out as 6.44."""
    assert chips.TPU_7X.hbm_bytes / chips.TPU_V6E.hbm_bytes == 6
    assert chips.TPU_V4.hbm_bytes == chips.TPU_V6E.hbm_bytes
    assert chips.TPU_V5E.hbm_bytes == chips.TPU_V2.hbm_bytes == 2**34


@pytest.mark.parametrize(
    ("chip", "reported"),
    [
        (chips.H100, 81_559 * 2**20),  # nvidia-smi, as the sources list it
        (chips.A100_80GB, 81_920 * 2**20),
        (chips.A100_40GB, 40_960 * 2**20),
        (chips.B200, 183_359 * 2**20),
        (chips.B300, 268.6 * 2**30),
        (chips.MI300X, 206_141_652_992),  # rocm-smi
    ],
)
def test_what_a_device_reports_is_the_record_less_what_the_driver_keeps(chip, reported):
    """Within 0.6 %, where reading GB as 10⁹ bytes would be 7 % short."""
    assert 0.994 < reported / chip.hbm_bytes <= 1


# ------------------------------------------------- what was printed, and the value


def test_where_the_sparse_rate_was_printed_the_value_is_half_of_it():
    seen = 0
    for chip, name, fact in FACTS:
        if not name.startswith("flops.") or "2:4 sparsity" not in fact.note:
            continue
        pattern = r"([\d.]+)( P(?:FL)?OPS)?(?: for (\d) GPUs)?,? with 2:4 sparsity"
        printed = re.search(pattern, fact.note)
        if not printed:
            assert "twice with 2:4 sparsity" in fact.note, (chip.id, name)
            continue
        value, unit, gpus = printed.groups()
        sparse = float(value) * (1e15 if unit else 1e12) / int(gpus or 1)
        assert sparse / 2 == pytest.approx(fact.value, rel=0.025), (chip.id, name)
        seen += 1
    assert seen > 30


def test_where_both_directions_were_printed_the_value_is_half_of_it():
    seen = 0
    for chip, name, fact in FACTS:
        pattern = r"prints?(?:ed as)? ([\d.]+) (GB/s|TB/s), both directions"
        if printed := numbers(pattern, fact.note):
            share = chip.links if name == "link_bandwidth" else 1
            assert math.prod(printed) / 2 == fact.value * share, (chip.id, name)
            seen += 1
    assert seen >= 15


def test_capacities_of_parts_add_up():
    seen = 0
    for chip, name, fact in FACTS:
        pattern = r"^(\d+) (KiB|MiB) in each of (\d+) "
        if name.endswith("_bytes") and (parts := numbers(pattern, fact.note)):
            assert math.prod(parts) == fact.value, (chip.id, name)
            seen += 1
    assert seen >= 20


def test_rates_given_per_clock_multiply_out():
    seen = 0
    for chip, _, fact in FACTS:
        pattern = r"(?:(\d+) SMs x )?(\d+) bytes a clock x ([\d.]+) GHz"
        if found := re.search(pattern, fact.note):
            sms, nbytes, ghz = (float(g or 1) for g in found.groups())
            assert ghz * 1e9 == chip.fact("clock").value
            assert sms * nbytes * ghz * 1e9 == pytest.approx(fact.value, rel=1e-3)
            seen += 1
    assert seen == 8


@EVERY_CHIP
def test_links_add_up_to_the_chip(chip):
    if {"links", "link_bandwidth"} <= set(chip.facts):
        total = chip.links * chip.link_bandwidth
        assert chip.scale_up_bandwidth == pytest.approx(total, rel=0.01)


# -------------------------------------------------------------- published arithmetic


def flops_per_clock(chip):
    """bf16 FLOPs of the whole chip in one clock, or None where not published."""
    value = {name: fact.value for name, fact in chip.facts.items()}
    if "mxus" in value:
        return 2 * value["mxus"] * value["mxu_size"] ** 2
    if "flops_per_clock" in value:
        return value["cores"] * value["flops_per_clock"]
    return None


def peak(chip):
    return chip.flops.get("bf16") or chip.flops.get("fp16")


def test_peaks_are_units_times_clock():
    """Gaudi 3 ships with a lower clock than its white paper has; its note says so."""
    checked, off = set(), set()
    for chip in chips.ALL:
        if "clock" in chip.facts and flops_per_clock(chip):
            product = flops_per_clock(chip) * chip.fact("clock").value
            checked.add(chip.id)
            if abs(product / peak(chip) - 1) > 0.02:
                off.add(chip.id)
    assert {"tpu_v3", "tpu_v4", "tpu_v5e", "v100", "a100_80gb", "h100"} <= checked
    assert {"mi250x", "mi300x", "mi355x", "gaudi2", "gaudi3", "tpu_v5p"} <= checked
    assert off == {"gaudi3", "b200", "gb200"}  # Blackwell: see the fp32 peaks below
    assert "1.6 GHz" in chips.GAUDI3.fact("flops.bf16").note
    assert "1.75 GHz" in chips.GAUDI3.fact("clock").note


@pytest.mark.parametrize(
    ("chip", "off"),
    [(chips.GB200, 0.003), (chips.B200, 0.008), (chips.RUBIN, 0.01)],
)
def test_fp32_peaks_of_blackwell_and_rubin_fit_the_clock_that_the_device_reports(
    chip, off
):
    """2 FLOPs a lane a clock, on the SMs that the device reports.

    With 148 SMs on a GB200, as on a B200, its peak would need 2.11 GHz, which it does
    not reach; with 224 on Rubin 2.27 GHz, less than was measured.
    """
    needed = chip.flops["fp32"] / (2 * chip.cores * 128)
    assert abs(needed / chip.clock - 1) < off
    other = {"GB200": 148, "Rubin": 224}.get(chip.name)
    if other:
        wrong = chip.flops["fp32"] / (2 * other * 128)
        assert abs(wrong / chip.clock - 1) > 0.02


def test_the_same_parts_on_one_board_have_fewer_sms_than_on_another():
    """HGX boards carry 148 SMs a GPU, the Grace superchips 152."""
    sms = {c.name: c.cores for c in (chips.B200, chips.GB200, chips.B300, chips.GB300)}
    assert sms == {"B200": 148, "GB200": 152, "B300": 148, "GB300": 152}
    for chip in (chips.B300, chips.GB300):  # no clock: both peaks need 1.98 to 2.06
        assert 1.97e9 < chip.flops["fp32"] / (2 * chip.cores * chip.lanes) < 2.06e9


def test_the_tensor_cores_of_blackwell_take_a_lower_clock_than_its_lanes():
    """As on Hopper: one data sheet, two clocks."""
    for chip, lower in ((chips.B200, 0.055), (chips.GB200, 0.026)):
        clock = chip.flops["bf16"] / (chip.cores * chip.flops_per_clock)
        assert 1 - clock / chip.clock == pytest.approx(lower, abs=0.001)


def test_a_peak_that_would_need_an_impossible_clock_is_noted():
    """Published MXU counts of Trillium and Ironwood do not reach their peaks."""
    impossible = {
        chip.id
        for chip in chips.ALL
        if flops_per_clock(chip) and peak(chip) / flops_per_clock(chip) > 2.5e9
    }
    assert impossible == {"tpu_v6e", "tpu_7x"}
    for key, ghz in (("tpu_v6e", "3.5 GHz"), ("tpu_7x", "4.4 GHz")):
        assert ghz in chips.find(key).fact("mxus").note


@pytest.mark.parametrize(
    ("chip", "precision", "published"),
    [
        (chips.TPU_7X, "fp8", 42.5e18),  # Ironwood launch
        (chips.TPU_V3, "bf16", 126e15),  # Cloud TPU v3 page
        (chips.TPU_V4, "bf16", 1.1e18),  # Cloud TPU v4 page
        (chips.TPU_V5E, "int8", 100e15),  # Cloud TPU v5e page
        (chips.TPU_V6E, "bf16", 234.9e15),  # Cloud TPU v6e page
        (chips.TPU_8T, "fp4", 121e18),  # eighth generation announcement
        (chips.GB200, "fp8", 360e15),  # GB200 NVL72: 720 PFLOPS with sparsity
        (chips.GB300, "fp4", 1080e15),  # GB300 NVL72, dense
        (chips.RUBIN, "fp4", 2520e15),  # Vera Rubin NVL72, dense
        (chips.TRAINIUM3, "fp8", 362_448e12),  # Trn3 Gen2 UltraServer
    ],
)
def test_pod_peaks_follow_from_the_chip(chip, precision, published):
    total = chip.fact("domain").value * chip.flops[precision]
    assert total == pytest.approx(published, rel=0.025)


@pytest.mark.parametrize("chip", [chips.TPU_V5E, chips.TPU_V6E])
def test_pod_all_reduce_and_bisection_follow_from_the_links(chip):
    """Google's all-reduce figure counts every link of every chip, one-way."""
    pod = chip.fact("domain").value
    assert pod * chip.scale_up_bandwidth == chip.fact("domain_allreduce").value
    side = math.isqrt(pod)
    cut = 2 * side * chip.link_bandwidth  # a torus is cut twice
    assert cut == chip.fact("domain_bisection").value


def test_older_pods_print_an_all_reduce_that_their_links_do_not_give():
    for chip, gigabytes in ((chips.TPU_V3, 83), (chips.TPU_V4, 45)):
        pod = chip.fact("domain").value
        implied = chip.fact("domain_allreduce").value / pod / chip.links
        assert implied == pytest.approx(gigabytes * 1e9, rel=0.01)
        assert f"{gigabytes} GB/s" in chip.fact("link_bandwidth").note


@pytest.mark.parametrize(
    ("chip", "name", "published"),
    [
        (chips.TPU_V5E, "scale_out_bandwidth", 6.4e12 / 8),  # 6.4 Tb/s a pod
        (chips.TPU_V6E, "scale_out_bandwidth", 25.6e12 / 8),  # 25.6 Tb/s a pod
        (chips.GB200, "scale_up_bandwidth", 130e12 / 2),  # 130 TB/s, both directions
        (chips.RUBIN, "scale_up_bandwidth", 260e12 / 2),  # 260 TB/s, both directions
        (chips.TPU_8T, "hbm_bytes", 2 * 2**50),  # 2 PB of HBM in a pod, read as PiB
        (chips.TRAINIUM3, "hbm_bytes", 20_736 * 2**30),  # Trn3 Gen2 UltraServer
        (chips.TRAINIUM3, "hbm_bandwidth", 705.6e12),  # Trn3 Gen2 UltraServer
    ],
)
def test_domain_totals_follow_from_the_chip(chip, name, published):
    total = chip.fact("domain").value * chip.fact(name).value
    assert total == pytest.approx(published, rel=0.04)


def test_published_critical_intensities():
    """240 for v5e rests on 820 GB/s; Google's page has 819, which gives 240.5."""
    hbm = chips.TPU_V5E.fact("hbm_bandwidth")
    per_jax = {source.key: value for value, source in hbm.disagrees}["jax"]
    assert (hbm.value, per_jax) == (819e9, 820e9)
    assert chips.TPU_V5E.flops["bf16"] / per_jax == pytest.approx(240.244, abs=5e-4)
    assert chips.TPU_V5E.intensity("bf16") == pytest.approx(240.537, abs=5e-4)
    assert round(chips.H100.intensity("bf16")) == 295
    assert round(chips.H100.intensity("fp8")) in (590, 591)
    assert round(chips.B200.intensity("bf16")) == 281
    assert round(chips.B200.intensity("fp8")) == 562


# --------------------------------------------------------------- an independent copy


def test_tpu_records_agree_with_jax_or_say_where_they_do_not():
    """JAX's own table; its values are per TensorCore, 0 means not available."""
    from jax._src.pallas.mosaic import tpu_info

    compared = 0
    for version in tpu_info.ChipVersion:
        if str(version) in ("v4i", "7"):  # v4i has no record, 7 is 7x
            continue
        chip = chips.find(f"tpu_{version}")
        cores = version.num_physical_tensor_cores_per_chip
        in_device = cores if version.supports_megacore else 1
        info = tpu_info.get_tpu_info_for_chip(version, in_device)
        theirs = {
            "devices_per_chip": cores // in_device,
            "cores": cores,
            "mxus": info.num_mxus * cores,
            "mxu_size": info.mxu_column_size,
            "flops.bf16": info.bf16_ops_per_second * cores,
            "flops.fp8": info.fp8_ops_per_second * cores,
            "flops.int8": info.int8_ops_per_second * cores,
            "flops.int4": info.int4_ops_per_second * cores,
            "hbm_bytes": info.hbm_capacity_bytes * cores,
            "hbm_bandwidth": info.mem_bw_bytes_per_second * cores,
            "onchip_bytes": info.vmem_capacity_bytes * cores,
            "cmem_bytes": info.cmem_capacity_bytes * cores,
        }
        for name, value in theirs.items():
            if not value:
                continue
            fact = chip.fact(name)
            recorded = [v for v, source in fact.disagrees if source.key == "jax"]
            if recorded:
                print(f"{chip.name} {name}: {fact.value:g}, jax has {value:g}")
                assert recorded == [pytest.approx(value, rel=1e-6)], (chip.id, name)
            else:
                assert value == pytest.approx(fact.value, rel=2e-3), (chip.id, name)
            compared += 1
    assert compared > 70


def test_a_device_is_not_always_a_chip():
    several = {c.id: c.devices_per_chip for c in chips.ALL if c.devices_per_chip != 1}
    assert several == {
        **dict.fromkeys(("tpu_v2", "tpu_v3", "tpu_7x", "tpu_8i"), 2),
        **dict.fromkeys(("mi250x", "trainium1"), 2),
        **dict.fromkeys(("trainium2", "trainium3"), 4),
    }


# ------------------------------------------------------------------------ looking up


@pytest.mark.parametrize(
    ("name", "constant"),
    [
        ("v5p", "TPU_V5P"),
        ("TPU v5e", "TPU_V5E"),
        ("TPU v5 lite", "TPU_V5E"),
        ("cloud tpu V4", "TPU_V4"),
        ("v4p", "TPU_V4"),
        ("Trillium", "TPU_V6E"),
        ("TPU v6 lite", "TPU_V6E"),
        ("ironwood", "TPU_7X"),
        ("TPU7x", "TPU_7X"),
        ("v7x", "TPU_7X"),
        ("h100", "H100"),
        ("H-100 SXM5", "H100"),
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA A100-SXM4-40GB", "A100_40GB"),
        ("Tesla V100-SXM2-32GB", "V100"),
        ("b200", "B200"),
        ("GB200 NVL72", "GB200"),
        ("MI300X", "MI300X"),
        ("AMD Instinct MI355X", "MI355X"),
        ("gaudi-3", "GAUDI3"),
        ("trn2", "TRAINIUM2"),
        ("s4000", "MTT_S4000"),
        ("v5 lite", "TPU_V5E"),
        ("tpu v5p", "TPU_V5P"),
        ("tpu_v5p", "TPU_V5P"),
        ("v5litepod", "TPU_V5E"),
        ("Google Cloud TPU v3", "TPU_V3"),
        ("TPU v7", "TPU_7X"),
        ("TPU 8t", "TPU_8T"),
        ("TPU Ironwood", "TPU_7X"),
        ("Trainium 2", "TRAINIUM2"),
        ("AWS Trainium2", "TRAINIUM2"),
        ("Amazon Trainium 3", "TRAINIUM3"),
        ("Trn1", "TRAINIUM1"),
        ("Habana Gaudi 2", "GAUDI2"),
        ("Intel Gaudi 3", "GAUDI3"),
        ("V100 32GB", "V100"),
        ("H100 SXM5 80GB", "H100"),
        ("H100-SXM-80GB", "H100"),
        ("H100-80GB", "H100"),
        ("H200 141GB", "H200"),
        ("A100 80 GB", "A100_80GB"),
        ("DGX B200", "B200"),
        ("Vera Rubin", "RUBIN"),
        ("Blackwell Ultra", "B300"),
        ("AMD MI300X", "MI300X"),
        ("MI325", "MI325X"),
        ("MTT S4000", "MTT_S4000"),
        ("H100-NVL", "H100_NVL"),
        ("NVIDIA H200 NVL", "H200_NVL"),
        ("GH200", "GH200"),
        ("NVIDIA L40S", "L40S"),
        ("groq lpu", "GROQ_LPU"),
        ("Cerebras WSE3", "WSE_3"),
    ],
)
def test_find_is_forgiving(name, constant):
    assert chips.find(name) is getattr(chips, constant)


@EVERY_CHIP
def test_every_name_of_a_chip_finds_it(chip):
    for name in (chip.id, chip.name, *chip.aliases):
        assert chips.find(name) is chip
        assert chips.find(name.upper().replace(" ", "-")) is chip


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("A100", r"^chip 'A100' could be A100 40GB, A100 80GB: say which$"),
        ("v5", r"^chip 'v5' could be TPU v5e, TPU v5p: say which$"),
        ("tpu", r"could be TPU v2, .*TPU 8i: say which$"),
        ("tpu v", r"could be (TPU [^,]*(, )?)+: say which$"),  # and no V100
        ("TPU 8", r"could be TPU 8t, TPU 8i: say which$"),
        ("Hopper", r"could be H100, H800, H200: say which$"),
        ("Blackwell", r"could be B200, GB200, B300, GB300: say which$"),
        ("NVIDIA Blackwell", r"could be B200, GB200, B300, GB300: say which$"),
        ("gaudi", r"could be Gaudi 2, Gaudi 3: say which$"),
        ("Trainium", r"could be Trainium1, Trainium2, Trainium3: say which$"),
        ("mi3", r"could be MI300X, MI325X, MI355X: say which$"),
        ("gb", r"could be GB200, GB300: say which$"),
        ("r", r"^no chip is called 'r'; nearest: Rubin$"),
        ("s", r"^no chip is called 's'; nearest: MTT S4000$"),
        ("H20", r"^no chip is called 'H20'; nearest: H200, H200 NVL$"),
        ("V100 16GB", r"^no chip is called 'V100 16GB'; nearest: V100"),
        ("Trilium", r"^no chip is called 'Trilium'; nearest: TPU v6e \(Trillium\)"),
        ("h1000", r"^no chip is called 'h1000'; nearest: .*H100"),
        ("H100 PCIe", r"^no chip is called 'H100 PCIe'; nearest: H100"),
        ("", r"^no chip is called '' or anything similar; .* H100, MI300X, Trainium2$"),
        (None, r"^no chip is called None or anything similar"),
        (["h100"], r"^no chip is called \['h100'\] or anything similar"),
        (b"h100", r"^no chip is called b'h100' or anything similar"),
        ("h100" * 2500, r"^no chip is called '(h100){19}h1… or anything similar"),
        (
            "rtx 4090",
            r"'rtx 4090' or anything similar; chips.ALL has 36, such as TPU v5e, ",
        ),
    ],
)
def test_a_wrong_or_ambiguous_name_lists_the_candidates(name, message):
    with pytest.raises(ValueError, match=message):
        chips.find(name)


def test_asking_for_what_nobody_published_says_what_is_published():
    with pytest.raises(ValueError, match=r"H100: no dense peak .*'fp4'; .*bf16, .*fp8"):
        chips.H100.flops["fp4"]
    with pytest.raises(ValueError, match=r"V100: no dense peak .*'bf16'; .*fp16, fp32"):
        chips.V100.intensity("bf16")
    with pytest.raises(ValueError, match=r"TPU v4: no measured .*'bf16'; .*none"):
        chips.TPU_V4.achieved["bf16"]
    with pytest.raises(ValueError, match=r"TPU v5p: no .*'onchip_bandwidth'; .*hbm_by"):
        _ = chips.TPU_V5P.onchip_bandwidth
    with pytest.raises(ValueError, match=r"Trainium2: no .*'scale_up_bandwidth'; "):
        _ = chips.TRAINIUM2.scale_up_bandwidth
    assert chips.H100.flops.get("fp4") is None
    assert "fp8" in chips.H100.flops


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda c: c.fact("hbm_bandwith").value, "H100: no fact is called 'hbm_bandwi"),
        (lambda c: c.fact("flops.bf61"), "no fact is called 'flops.bf61'; known: year"),
        (lambda c: c.fact("flops"), "no fact is called 'flops'"),
        (lambda c: c.fact(None), "no fact is called None"),
        (lambda c: c.flops["bf61"], "precision 'bf61': must be one of fp64"),
        (lambda c: c.achieved[["bf16"]], r"precision \['bf16'\]: must be one of"),
        (lambda c: c.intensity(["bf16"]), r"precision \['bf16'\]: must be one of"),
        (lambda c: roofline.roof(c, "BF16").peak, "precision 'BF16': must be one of"),
    ],
)
def test_a_misspelt_name_is_a_mistake_and_no_dash(read, message):
    """Only what is known and unpublished is a dash in a table."""
    with pytest.raises(ValueError, match=message) as caught:
        read(chips.H100)
    assert not isinstance(caught.value, Absent)
    with pytest.raises(ValueError, match=message):
        compare([chips.H100], {"x": read})
    switch = nvswitch(chips.H100)
    with pytest.raises(ValueError, match="no fact is called 'hbm_bytes'") as caught:
        switch.fact("hbm_bytes")  # of a chip
    assert not isinstance(caught.value, Absent)


def test_smem_is_less_than_the_l1_that_it_is_a_part_of():
    """228 of 256 KiB an SM since Hopper; the B200's had the sum as SMEM."""
    with_both = [c for c in chips.ALL if "l1_bytes" in c.facts]
    assert {"H100", "H200", "B200"} <= {c.name for c in with_both}
    for chip in with_both:
        assert chip.onchip_bytes < chip.l1_bytes, chip.name
    for chip in (chips.H100, chips.H200, chips.B200):
        assert chip.onchip_bytes == 228 * 1024 * chip.cores


def test_every_year_has_its_source_and_announcements_say_so():
    announced = {c.name for c in chips.ALL if "announce" in c.fact("year").note}
    assert announced == {"TPU 8t", "TPU 8i", "Rubin", "H100 NVL", "L40S"}
    later = {"TPU v4": 2021, "H200": 2024, "GB200": 2025, "Trainium1": 2022}
    assert {name: chips.find(name).year for name in later} == later


def test_the_dense_fp4_rate_of_a_b300_is_that_of_the_board_and_of_its_clock():
    """NVIDIA prints 144 sparse and 108 dense for 8; and 1080 for 72 on a GB300, whose
    bf16 rate is as much higher."""
    fp4 = chips.B300.fact("flops.fp4")
    assert 8 * fp4.value == 108e15
    assert 8 * chips.B300.fact("sparse.fp4").value == 144e15
    clocks = chips.GB300.flops["bf16"] / chips.B300.flops["bf16"]
    assert chips.GB300.flops["fp4"] / fp4.value == pytest.approx(clocks)
    assert fp4.said("hgx_b300") == 13.125e15


def test_records_print_as_sentences():
    assert str(chips.H100) == (
        "H100: 989 TFLOPs/s in bf16, 3.35 TB/s from memory, 295 FLOPs per byte."
    )
    for chip in chips.ALL:
        ends = "from SRAM" if chip is chips.WSE_3 else "FLOPs per byte"
        assert re.fullmatch(rf"{re.escape(chip.name)}: .* {ends}\.", repr(chip))
    text = repr(chips.TPU_V3.fact("hbm_bandwidth"))
    assert "9e+11" in text
    assert "docs/v3" in text
    assert "jax says 8.25e+11" in text


def test_a_measured_chip_works_like_any_other_and_bad_input_is_named():
    laptop = chips.measured("my laptop", {"fp32": 2e11, "bf16": 1e11}, 2e10)
    assert laptop.intensity("fp32") == 10
    assert laptop.fact("hbm_bandwidth").source.kind == "measured"
    narrow = chips.measured("x", {"fp32": np.float32(2e11)}, np.int32(2 * 10**9))
    assert type(narrow.hbm_bandwidth) is int
    assert type(narrow.flops["fp32"]) is float
    with pytest.raises(ValueError, match="hbm_bandwidth = -1"):
        chips.measured("x", {"fp32": 1.0}, -1)
    with pytest.raises(ValueError, match="fp32 = nan"):
        chips.measured("x", {"fp32": math.nan}, 1.0)
    with pytest.raises(ValueError, match="precision 'fp31': must be one of"):
        chips.measured("x", {"fp31": 1.0}, 1.0)
    with pytest.raises(ValueError, match="at least one precision"):
        chips.measured("x", {}, 1.0)
    with pytest.raises(ValueError, match="flops = 5: must map precisions to rates"):
        chips.measured("x", 5, 1.0)
