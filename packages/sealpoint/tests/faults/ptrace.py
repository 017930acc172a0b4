# SPDX-License-Identifier: Apache-2.0
"""A debugger's view of a child: the system calls it makes, before and after, and how to change one.

Pure Python on `ptrace(2)`, so that no compiler, library or tool is needed: Linux 5.3 or newer on
x86-64 or 64-bit ARM. A child that called `stop_for_tracing` is followed, with all OS threads it
starts from then on, until it ends. It stops at those calls alone that it has named in `show_calls`,
by a filter of `seccomp(2)`; all others cost it nothing. Before such a call the watcher may let it
fail with an error of its choice, shorten the bytes it is to write, or kill the process there;
nothing else is touched. It does not follow forks.
"""

import contextlib
import ctypes
import os
import platform
import signal
import sys
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from struct import Struct
from typing import Protocol

from tests.faults.calls import NUMBERS, Call

__all__ = [
    "Fail",
    "Fault",
    "Kill",
    "Shorten",
    "Watcher",
    "follow",
    "show_calls",
    "stop_for_tracing",
]

_TRACEME, _CONT, _SYSCALL, _SETOPTIONS = 0, 7, 24, 0x4200
_GETREGSET, _SETREGSET, _GET_SYSCALL_INFO = 0x4204, 0x4205, 0x420E
_OPTIONS = 0x00000001 | 0x00000008 | 0x00000080 | 0x00100000
"""Mark stops after system calls, follow new OS threads, stop where a filter says so, and kill the
child if the tracer dies."""
_FILTER_STOP = 7
_SYSCALL_STOP = signal.SIGTRAP | 0x80 if sys.platform != "win32" else 0
_WALL = 0x40000000
_ENTRY_INFO = Struct("=B3xI16xQ6Q")
_EXIT_INFO = Struct("=B3xI16xq")
_PRSTATUS, _ARM_SYSTEM_CALL = 1, 0x404
_X86_RETURN, _X86_NUMBER, _X86_THIRD = 10, 15, 12
_X86_REGISTERS, _ARM_REGISTERS = 27, 34
_NO_NEW_PRIVILEGES = 38
_SECCOMP = 277 if platform.machine() == "aarch64" else 317
_SET_FILTER, _ALL_OS_THREADS = 1, 1
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_TRACE, _ALLOW = 0x7FF0_0000, 0x7FFF_0000
_STEP = Struct("=HBBI")


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


class _Filter(ctypes.Structure):
    _fields_ = (("steps", ctypes.c_ushort), ("first", ctypes.c_char_p))


@dataclass(frozen=True, slots=True)
class Fail:
    """The call is not made and returns an error."""

    errno: int


@dataclass(frozen=True, slots=True)
class Shorten:
    """Only that many bytes of a write are written, and the caller is told so."""

    size_bytes: int


@dataclass(frozen=True, slots=True)
class Kill:
    """The process is killed before the call or right after it."""

    after: bool = False


Fault = Fail | Shorten | Kill


class Watcher(Protocol):
    """Who is asked about every call that the child shows."""

    def begin(self) -> None:
        """The process stands still, before its first call."""
        ...

    def enter(self, call: Call) -> Fault | None:
        """The call is about to be made; what is to become of it."""
        ...

    def waits_for(self, call: Call) -> bool:
        """Whether `leave` is to be called although nothing is done to the call."""
        ...

    def leave(self, call: Call, result: int) -> None:
        """The call returned; a negative result is an error number."""
        ...


def _ptrace(request: int, thread: int, address: int = 0, data: int = 0) -> int:
    found: int = _libc_ptrace(request, thread, address, data)
    if found == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"ptrace request {request:#x}: {os.strerror(code)}")
    return found


def _found_ptrace() -> Callable[..., int]:
    function = _libc.ptrace
    function.restype = ctypes.c_long
    function.argtypes = (ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p)
    return function


_libc = ctypes.CDLL(None, use_errno=True)
_libc_ptrace = _found_ptrace() if sys.platform == "linux" else NotImplemented


def stop_for_tracing() -> None:
    """Let the parent follow this process from here on; it must be waiting in `follow`."""
    _ptrace(_TRACEME, 0)
    os.kill(os.getpid(), signal.SIGSTOP)


def show_calls(names: AbstractSet[str] = frozenset(NUMBERS.get(platform.machine(), ()))) -> None:
    """Let all OS threads of this process stop before calls of these names, beside earlier ones."""
    numbers = sorted(NUMBERS[platform.machine()][name] for name in names)
    steps = [
        _STEP.pack(_LOAD, 0, 0, 0),
        *(
            _STEP.pack(_JUMP_IF_EQUAL, left, 0, number)
            for left, number in zip(range(len(numbers), 0, -1), numbers, strict=True)
        ),
        _STEP.pack(_RETURN, 0, 0, _ALLOW),
        _STEP.pack(_RETURN, 0, 0, _TRACE),
    ]
    chosen = _Filter(len(steps), b"".join(steps))
    if _libc.prctl(_NO_NEW_PRIVILEGES, *map(ctypes.c_ulong, (1, 0, 0, 0))) or _libc.syscall(
        *map(ctypes.c_ulong, (_SECCOMP, _SET_FILTER, _ALL_OS_THREADS)), ctypes.byref(chosen)
    ):
        code = ctypes.get_errno()
        raise OSError(code, f"seccomp: {os.strerror(code)}")


class _Registers:
    """How a call is changed, on the two architectures."""

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._arm = platform.machine() == "aarch64"
        self._values = (ctypes.c_uint64 * (_ARM_REGISTERS if self._arm else _X86_REGISTERS))()
        self._transfer(_GETREGSET, _PRSTATUS, self._values)

    def skip(self) -> None:
        """Let the system make no call at all."""
        if self._arm:
            self._transfer(_SETREGSET, _ARM_SYSTEM_CALL, ctypes.c_int(-1))
        else:
            self._set(_X86_NUMBER, -1)

    def set_result(self, value: int) -> None:
        self._set(0 if self._arm else _X86_RETURN, value)

    def set_third(self, value: int) -> None:
        """Change the third argument: the size, in a write."""
        self._set(2 if self._arm else _X86_THIRD, value)

    def _set(self, number: int, value: int) -> None:
        self._values[number] = value & 0xFFFF_FFFF_FFFF_FFFF
        self._transfer(_SETREGSET, _PRSTATUS, self._values)

    def _transfer(
        self, request: int, kind: int, values: ctypes.Array[ctypes.c_uint64] | ctypes.c_int
    ) -> None:
        vector = _Vector(ctypes.addressof(values), ctypes.sizeof(values))
        _ptrace(request, self._thread, kind, ctypes.addressof(vector))


class _Follower:
    """The state of one trace."""

    def __init__(self, process: int, watcher: Watcher) -> None:
        self._process = process
        self._watcher = watcher
        self._memory = os.open(f"/proc/{process}/mem", os.O_RDONLY | os.O_CLOEXEC)
        self._under_way: dict[int, tuple[Call, Fault | None]] = {}
        self._threads = {process}
        self._info = ctypes.create_string_buffer(96)

    def close(self) -> None:
        os.close(self._memory)

    def stopped(self, thread: int, status: int) -> None:
        """Deal with one stop and let the OS thread go on."""
        number = os.WSTOPSIG(status)
        hand_on = 0
        try:
            if status >> 16 == _FILTER_STOP:
                self._before(thread)
            elif number == _SYSCALL_STOP:
                self._after(thread)
            elif thread not in self._threads:
                self._threads.add(thread)
            elif not status >> 16:
                hand_on = number
            _ptrace(_SYSCALL if thread in self._under_way else _CONT, thread, 0, hand_on)
        except ProcessLookupError:
            self._under_way.pop(thread, None)

    def _before(self, thread: int) -> None:
        _ptrace(_GET_SYSCALL_INFO, thread, len(self._info), ctypes.addressof(self._info))
        _, _, number, *args = _ENTRY_INFO.unpack_from(self._info)
        call = Call(self._process, _NAMES[number], tuple(args), self._memory)
        fault = self._watcher.enter(call)
        if fault is not None or self._watcher.waits_for(call):
            self._under_way[thread] = call, fault
            self._begin(thread, fault)

    def _after(self, thread: int) -> None:
        _ptrace(_GET_SYSCALL_INFO, thread, len(self._info), ctypes.addressof(self._info))
        call, fault = self._under_way.pop(thread)
        result: int = _EXIT_INFO.unpack_from(self._info)[2]
        if isinstance(fault, Fail):
            result = -fault.errno
            _Registers(thread).set_result(result)
        self._watcher.leave(call, result)
        if fault == Kill(after=True):
            os.kill(self._process, signal.SIGKILL)

    def _begin(self, thread: int, fault: Fault | None) -> None:
        if isinstance(fault, Fail):
            _Registers(thread).skip()
        elif isinstance(fault, Shorten):
            _Registers(thread).set_third(fault.size_bytes)
        elif isinstance(fault, Kill) and not fault.after:
            _Registers(thread).skip()
            os.kill(self._process, signal.SIGKILL)


_NAMES = {number: name for name, number in NUMBERS.get(platform.machine(), {}).items()}


def follow(process: int, watcher: Watcher) -> int:
    """Follow a child, the only one, from its `stop_for_tracing` on until it ends.

    Returns:
        Its exit status, negative for a signal.
    """
    _, status = os.waitpid(process, os.WUNTRACED)
    if not os.WIFSTOPPED(status):
        return os.waitstatus_to_exitcode(status)
    _ptrace(_SETOPTIONS, process, 0, _OPTIONS)
    follower = _Follower(process, watcher)
    try:
        watcher.begin()
        _ptrace(_CONT, process)
        while True:
            thread, status = os.waitpid(-1, _WALL)
            if os.WIFSTOPPED(status):
                follower.stopped(thread, status)
            elif thread == process:
                return os.waitstatus_to_exitcode(status)
    except BaseException:
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(process, signal.SIGKILL)
            # Its other OS threads come first: as long as one is not waited for, it does not end.
            while os.waitpid(-1, _WALL)[0] != process:
                pass
        raise
    finally:
        follower.close()
