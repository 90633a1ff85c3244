"""Makes Linux refuse system calls that answers don't need, such as fork and socket.

Because the process can't start another one, a limit on its memory applies to everything
that the answer runs. The filter (seccomp) needs no privileges and can't be removed.
"""

import ctypes
import errno
import platform
import struct
import sys

_CLONE_THREAD = 0x10000
_X32 = 0x40000000  # numbers of x86's second table start here
_NUMBERS = {  # the kernel's number of the architecture, clone, clone3, refused calls
    "x86_64": (
        0xC000003E,
        56,
        435,
        {
            "fork": 57,
            "vfork": 58,
            "execve": 59,
            "execveat": 322,
            "socket": 41,
            "io_uring_setup": 425,  # could open sockets without the call "socket"
            "memfd_create": 319,  # memory that this process's limit does not count
            "memfd_secret": 447,
            "shmget": 29,
            "msgget": 68,
            "semget": 64,
            "bpf": 321,
            "add_key": 248,  # a keyring outlives the process that filled it
            "request_key": 249,
            "keyctl": 250,
            "unshare": 272,  # the process would have privileges in a new namespace
            "setns": 308,
            "mount": 165,
            "sched_setaffinity": 203,
        },
    ),
    "aarch64": (
        0xC00000B7,
        220,
        435,
        {
            "execve": 221,
            "execveat": 281,
            "socket": 198,
            "io_uring_setup": 425,
            "memfd_create": 279,
            "memfd_secret": 447,
            "shmget": 194,
            "msgget": 186,
            "semget": 190,
            "bpf": 280,
            "add_key": 217,
            "request_key": 218,
            "keyctl": 219,
            "unshare": 97,
            "setns": 268,
            "mount": 40,
            "sched_setaffinity": 122,
        },
    ),
}
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data
_NO_NEW_PRIVILEGES, _HAS_FILTERS, _SECCOMP, _FILTER = 38, 21, 22, 2  # of prctl


def known() -> bool:
    """Whether the filter covers this architecture, and the kernel supports filters."""
    if sys.platform != "linux" or platform.machine() not in _NUMBERS:
        return False
    return ctypes.CDLL(None).prctl(_HAS_FILTERS, 0, 0, 0, 0) >= 0


def forbid() -> None:
    """From now on, refuse these calls in this thread and in all threads that it starts.

    Raises:
        OSError: the kernel does not accept the filter.
    """
    code = b"".join(struct.pack("<HBBI", *step) for step in _program())
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    pointer = ctypes.create_string_buffer(program)
    for told in (
        (_NO_NEW_PRIVILEGES, 1, 0, 0, 0),
        (_SECCOMP, _FILTER, ctypes.addressof(pointer), 0, 0),
    ):
        if prctl(*told):
            raise OSError(ctypes.get_errno(), "prctl")


def _program() -> list[tuple[int, int, int, int]]:
    """The filter: (operation, steps to skip if true, if false, value) for each step."""
    architecture, clone, clone3, refused = _NUMBERS[platform.machine()]
    refuse = (_RETURN, 0, 0, _REFUSE | errno.EPERM)
    steps = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        refuse,
        (_EQUAL, 0, 1, clone3),  # its flags can't be read; libc falls back to clone
        (_RETURN, 0, 0, _REFUSE | errno.ENOSYS),
    ]
    for number in refused.values():
        steps += [(_EQUAL, 0, 1, number), refuse]
    return [
        *steps,
        (_EQUAL, 0, 3, clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 1, 0, _CLONE_THREAD),
        refuse,
        (_RETURN, 0, 0, _ALLOW),
    ]
