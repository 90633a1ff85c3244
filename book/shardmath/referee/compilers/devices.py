"""The devices of a target, as its compiler needs them. They need not be present."""

import importlib.util
import math
import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version

import jax
import numpy as np
from jax.experimental import mesh_utils, topologies

from ...base.units import short_repr
from .targets import Target, gpus

ENVIRONMENT = {  # otherwise the TPU compiler looks for a TPU and for other processes
    "TPU_SKIP_MDS_QUERY": "1",
    "TPU_ACCELERATOR_TYPE": "v5e-8",
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_WORKER_ID": "0",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
}
PACKAGES = {"tpu": "libtpu", "cuda": "jax_plugins.xla_cuda13"}


def missing(target: Target) -> str:
    """The reason why this machine can't compile for `target`, or ""."""
    package = PACKAGES.get(target.platform)
    if package is None:
        return ""
    try:
        found = importlib.util.find_spec(package)
    except ModuleNotFoundError:  # the parent package is missing
        found = None
    if found is None:
        return f"the compiler for {target.name} is not installed here"
    if target.platform == "cuda" and jax.config.jax_platforms != "cpu":
        return "the CUDA plugin compiles without a GPU only under JAX_PLATFORMS=cpu"
    return ""


def installed(target: Target) -> dict[str, str]:
    """Package name → installed version, for the compiler of `target`."""
    found = {}
    for package in target.compiler:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "none"
    return found


def devices(target: Target, sizes: tuple[int, ...]) -> tuple[jax.Device, ...]:
    """The devices of `target` in the order of a mesh of `sizes`, row-major.

    On a TPU slice, axes are placed on the torus as `jax.make_mesh` places them. If
    necessary, two axes share a side of the torus. Slices vary slowest. GPUs and the
    devices here are in the order of their numbers.

    Raises:
        ValueError: there are too few devices here, or the first mesh axes do not match
            the number of slices.
    """
    if target.platform == "tpu":
        return tuple(_tpus(target, sizes).flat)
    if target.platform == "cuda":
        nodes, each = target.shape
        kind = target.name.partition(":")[0]
        found = topologies.get_topology_desc(
            kind, "cuda", target_config=description(kind), topology=f"1x{nodes}x{each}"
        ).devices
        return tuple(found)
    here = jax.devices()
    if len(here) < target.devices:
        raise ValueError(
            f"target {target.name!r}: there are {len(here)} devices here; for more, "
            f"start with jax.config.update('jax_num_cpu_devices', {target.devices})"
        )
    return tuple(here[: target.devices])


def _tpus(target: Target, sizes: tuple[int, ...]) -> np.ndarray:
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    options: dict[str, object] = {}
    if target.slices > 1:
        options["num_slices"] = target.slices
    if target.name.startswith("v4:"):
        options["chip_config_name"] = "megacore"  # both cores are one device
    slice_name = target.name.partition("*")[0]
    if target.shape == (1,):  # take it from the smallest slice of whole trays
        cube = slice_name.startswith(("v4", "v5p", "tpu7x"))
        slice_name = slice_name.removesuffix("1") + ("2x2x1" if cube else "2x2")
    found = topologies.get_topology_desc(slice_name, "tpu", **options).devices
    if target.shape == (1,):
        return np.array(found[:1])
    split = {"allow_split_physical_axes": True}
    if target.slices == 1:
        return mesh_utils.create_device_mesh(sizes, found, **split)
    across = tuple(_across(target, sizes))
    inside = tuple(size // n for size, n in zip(sizes, across, strict=True))
    return mesh_utils.create_hybrid_device_mesh(inside, across, found, **split)


def _across(target: Target, sizes: tuple[int, ...]) -> Iterator[int]:
    """How many slices each axis spans. The outermost axes span slices."""
    left = target.slices
    for size in sizes:
        part = math.gcd(size, left)
        if left > 1 and part != min(size, left):
            raise ValueError(
                f"target {target.name!r}: mesh axes {short_repr(sizes)} must begin "
                "with those "
                f"across its {target.slices} slices"
            )
        left //= part
        yield part


def description(gpu: str) -> str:
    """The description of a GPU for XLA, as a text proto; see ``gpus.toml``."""
    said = gpus()[gpu]
    major, minor = said["compute_capability"]
    fields = {name: value for name, value in said.items() if name not in _APART}
    dnn = zip(("major", "minor", "patch"), said["dnn_version"], strict=True)
    return "\n".join(
        [
            "gpu_device_info {",
            f"cuda_compute_capability {{ major: {major} minor: {minor} }}",
            *(f"{name}: {value}" for name, value in fields.items()),
            "}",
            'platform_name: "CUDA"',
            f"dnn_version_info {{ {' '.join(f'{k}: {v}' for k, v in dnn)} }}",
            f'device_description_str: "{said["device_description_str"]}"',
        ]
    )


_APART = ("source", "device_description_str", "dnn_version", "compute_capability")
