"""What every test and every kernel that a test starts must share."""

import os

pytest_plugins = ["suite"]  # tests/suite.py

# Kernels inherit these.
os.environ |= {
    "JAX_NUM_CPU_DEVICES": "8",
    "JAX_PLATFORMS": "cpu",
    "PYTHONHASHSEED": "0",
    "SHARDMATH_STATIC": "1",
    "SHARDMATH_PROGRESS": "",  # in memory: a reader's own file is never touched
}
