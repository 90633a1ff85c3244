"""What every test and every kernel that a test starts must share."""

import os
import sys
from pathlib import Path

from hypothesis import settings

pytest_plugins = ["suite"]  # tests/suite.py

# An example that waits for a busy machine is no fault.
settings.register_profile("book", deadline=None)
settings.load_profile("book")

# Hundreds of processes import the package: only the first should have to compile it.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Kernels inherit these.
os.environ |= {
    # Jupyter's usual kernel, except that Python looks for garbage more rarely.
    "JUPYTER_PATH": str(Path(__file__).parent / "tests/jupyter"),
    "JAX_NUM_CPU_DEVICES": "8",
    "JAX_PLATFORMS": "cpu",
    "PYTHONHASHSEED": "0",
    "SHARDMATH_STATIC": "1",
    "SHARDMATH_PROGRESS": "",  # in memory: a reader's own file is never touched
    # XLA's older way to write fused loops, not optimised: a fifth of the seconds to
    # compile. What notebooks keep was made in the usual way; both must say the same.
    "XLA_FLAGS": "--xla_cpu_use_fusion_emitters=false "
    "--xla_backend_optimization_level=0",
}
