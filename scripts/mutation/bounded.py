"""Runs a program that may hang, fork or eat all memory: whatever it does, it ends, with all that it started."""
import os
import resource
import signal
import subprocess
import time

MEMORY = 4 << 30  # bytes in use by the program and what it started, together; the largest test uses a tenth of it
OUTPUT = 64 << 20
LOOK = 0.1        # seconds between two looks at it


def session_of(number):
    """(session, bytes in use) of a process, or (0, 0): it has ended."""
    try:
        with open("/proc/%s/stat" % number, encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return (0, 0) if fields[0] == "Z" else (int(fields[3]), int(fields[21]) * resource.getpagesize())
    except (OSError, IndexError):
        return 0, 0


def members(session):
    """{process: bytes in use}"""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            its, used = session_of(name)
            if its == session:
                found[int(name)] = used
    return found


def end_all(session):
    """One that is forked while the others end is met by the next round."""
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


def run(words, folder, seconds, environment=None):
    """(exit code, None when it was stopped; what it wrote, or why it was stopped).

    The memory in use is watched: a limit of the address space (ulimit -v) would end every program, as the simulated device and the
    sanitizers reserve hundreds of GiB that they never touch.
    """
    log = os.path.join(folder, "output")
    with open(log, "wb") as output:
        process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
                                   start_new_session=True, env=environment,
                                   preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CORE, (0, 0)))
        stopped, deadline = None, time.monotonic() + seconds
        try:
            while stopped is None:
                try:
                    process.wait(LOOK)
                    break
                except subprocess.TimeoutExpired:
                    if time.monotonic() > deadline:
                        stopped = "hangs"
                    elif sum(members(process.pid).values()) > MEMORY:
                        stopped = "takes all memory"
                    elif os.path.getsize(log) > OUTPUT:
                        stopped = "writes without end"
        finally:
            process.kill()
            process.wait()
            end_all(process.pid)
    if stopped:
        return None, stopped
    with open(log, encoding="utf-8", errors="replace") as written:
        return process.returncode, written.read()
