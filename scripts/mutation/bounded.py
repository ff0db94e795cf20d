"""Runs a program that may hang, fork or use up all memory. It is always ended, with all processes that it started."""
import collections
import ctypes
import os
import resource
import signal
import subprocess
import time

MEMORY = 4 << 30  # bytes in use by the program and its children together; the largest test uses a tenth of this
OUTPUT = 64 << 20
LOOK = 0.1        # seconds between two checks of the program
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)
Ended = collections.namedtuple("Ended", "code text seconds")


def session_of(number):
    """Returns (session, bytes in use) of a process, or (0, 0) if it has ended."""
    try:
        with open("/proc/%s/stat" % number, encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (0, 0) if fields[0] == "Z" else (int(fields[3]), int(fields[21]) * resource.getpagesize())
    except (OSError, IndexError):
        return 0, 0


def members(session):
    """Returns {process: bytes in use} of a session."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            its, used = session_of(name)
            if its == session:
                found[int(name)] = used
    return found


def end_all(session):
    """Kills all processes of a session. A process that is forked during one round is killed in the next."""
    while True:
        alive = [number for number in members(session) if number != session]
        if not alive:
            return
        for number in alive:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def watch(process, log, seconds):
    """Returns the result of wait4() or None, and the reason to stop the program or None."""
    deadline, pause = time.monotonic() + seconds, 0.002
    while True:
        ended = os.wait4(process, os.WNOHANG)
        if ended[0]:
            return ended, None
        if pause >= LOOK:
            if time.monotonic() > deadline:
                return None, "hangs"
            if sum(members(process).values()) > MEMORY:
                return None, "takes all memory"
            if os.path.getsize(log) > OUTPUT:
                return None, "writes without end"
        time.sleep(pause)
        pause = min(2 * pause, LOOK)


def limit():
    """Runs in the child before the program starts. It disables core files, and makes the child end with its parent."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def run(words, folder, seconds, environment=None):
    """Returns Ended(exit code, or None if it was stopped; output, or the reason of the stop; processor seconds).

    It limits the memory in use, not the address space (ulimit -v). The simulated device and the sanitizers reserve hundreds of
    GiB that they never touch, so such a limit would end every program.
    """
    log = os.path.join(folder, "output")
    with open(log, "wb") as output:
        process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   start_new_session=True, env=environment, preexec_fn=limit)
    ended = None
    try:
        ended, stopped = watch(process.pid, log, seconds)
    finally:
        if not ended:
            process.kill()
            ended = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        end_all(process.pid)
    used = ended[2].ru_utime + ended[2].ru_stime
    if stopped:
        return Ended(None, stopped, used)
    with open(log, encoding="utf-8", errors="replace") as written:
        return Ended(process.returncode, written.read(), used)
