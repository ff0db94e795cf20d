"""Fetches the peers of scripts/bench-peers, and builds the programs of lab/bench/peers with them."""
import glob
import os
import platform
import re
import shutil
import subprocess
import sys
import zipfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCH = os.path.join(ROOT, "lab", "bench", "peers")
TORCH, RMM, RAPIDS_LOGGER, RUNTIME = "torch==2.10.0", "librmm-cu12==25.12.0", "rapids-logger", "nvidia-cuda-runtime-cu12"
COMMON = ["workload", "measured", "pairs", "threads", "trace"]
BUILD = BIN = FAKE = None


def set_folder(folder):
    """Sets the folder of all files: fetched peers, programs, and the libraries of the fake driver."""
    global BUILD, BIN, FAKE
    BUILD = os.path.abspath(folder)
    BIN, FAKE = os.path.join(BUILD, "bin"), os.path.join(BUILD, "fake")


def revision():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always"], capture_output=True, text=True)
    return done.stdout.strip() or "no revision"


# ---- fetching peers ----

class Missing(Exception):
    """A peer is not available. The text is the reason."""


def run(words, **more):
    return subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)


def last_line(text):
    lines = [line for line in (text or "").splitlines() if line.strip()]
    return lines[-1].strip()[:160].replace("|", "/") if lines else "no reason was given"


def attempt(what, words, **more):
    try:
        return run(words, **more).stdout
    except (OSError, subprocess.SubprocessError) as failed:
        raise Missing("%s: %s" % (what, last_line(getattr(failed, "output", None) or str(failed)))) from failed


def pip():
    """Returns the pip of this Python, or of a virtual environment made for it."""
    if subprocess.run([sys.executable, "-m", "pip", "--version"], capture_output=True).returncode == 0:
        return [sys.executable, "-m", "pip"]
    python = os.path.join(BUILD, "venv", "bin", "python")
    if not os.path.exists(python):
        attempt("there is no pip, and no environment can be made", [sys.executable, "-m", "venv", os.path.join(BUILD, "venv")])
    return [python, "-m", "pip"]


def wheel(requirement, wanted):
    """Returns the folder of the unpacked wheel, with the files that `wanted` selects. pip uses the machine's own registry."""
    name = re.split("[=<>]", requirement)[0]
    folder = os.path.join(BUILD, "wheels", requirement)
    if os.path.exists(os.path.join(folder, "complete")):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    attempt("pip cannot get " + requirement, [*pip(), "download", "-q", "--no-deps", "--only-binary", ":all:", "--disable-pip-version-check",
                                              "-d", folder, requirement], timeout=1800)
    found = glob.glob(os.path.join(folder, "*.whl"))
    if not found:
        raise Missing("pip did not get a wheel of " + name)
    with zipfile.ZipFile(found[0]) as packed:
        for member in packed.namelist():
            if wanted(member):
                packed.extract(member, folder)
    os.remove(found[0])
    open(os.path.join(folder, "complete"), "w", encoding="utf-8").close()
    return folder


def everything(_):
    return True


def runtime_headers():
    return os.path.join(wheel(RUNTIME, everything), "nvidia", "cuda_runtime")


def toolkit_headers():
    """Returns the folders of cub/util_allocator.cuh and cuda_runtime.h, from a Toolkit or RMM's wheel, and a description of their
    origin."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for home in [home for home in homes if home]:
        include = os.path.join(home, "include")
        for folder in (os.path.join(include, "cccl"), include):
            if os.path.exists(os.path.join(folder, "cub", "util_allocator.cuh")):
                return [folder, include], "the CUDA Toolkit's headers"
    rapids = os.path.join(wheel(RMM, everything), "librmm", "include", "rapids")
    if os.path.exists(os.path.join(rapids, "cub", "util_allocator.cuh")):
        return [rapids, os.path.join(runtime_headers(), "include")], "the headers in RMM's wheel"
    raise Missing("no CUDA Toolkit with CUB's headers (CUDA_HOME names one), and none in RMM's wheel")


def debian(package, pattern):
    """Returns the path of a library of a Debian package, which need not be installed."""
    for folder in ("/usr/lib/*", "/usr/lib", "/usr/local/lib"):
        found = sorted(glob.glob(os.path.join(folder, pattern)))
        if found:
            return found[0]
    folder = os.path.join(BUILD, "debian", package)
    unpacked = os.path.join(folder, "usr", "lib", "*", pattern)
    if not glob.glob(unpacked):
        if not shutil.which("apt-get") or not shutil.which("dpkg"):
            raise Missing("%s is not installed, and there is no apt-get" % package)
        os.makedirs(folder, exist_ok=True)
        attempt("apt-get cannot get " + package, ["apt-get", "download", "-q", package], cwd=folder, timeout=300)
        attempt("dpkg", ["dpkg", "-x", glob.glob(os.path.join(folder, "*.deb"))[0], folder])
    found = sorted(glob.glob(unpacked))
    if not found:
        raise Missing("Debian's %s has no %s" % (package, pattern))
    return found[0]


# ---- building ----

CFLAGS = ["-std=gnu17", "-O2", "-DNDEBUG", "-I", ROOT, "-I", os.path.join(ROOT, "include")]
TAIL = ["-ldl", "-lpthread", "-lm"]


def cc():
    return os.environ.get("CC", "cc")


def cxx():
    found = shutil.which(os.environ.get("CXX", "c++"))
    if not found:
        raise Missing("there is no C++ compiler")
    return found


def source(*names):
    return [os.path.join(BENCH, *name.split("/")) for name in names]


def objects():
    return [os.path.join(BIN, name + ".o") for name in COMMON + ["counted"]]


def built_library(options):
    if options.library:
        return os.path.abspath(options.library)
    run(["cmake", "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=Release", "-DSTRATA_TESTS=OFF", "-DSTRATA_BENCH=ON"])
    run(["cmake", "--build", BUILD, "-j", str(os.cpu_count() or 2), "--target", "strata", "bench_growth"])
    return os.path.join(BUILD, "libstrata.so")


def build_object(name, made):
    run([cc(), *CFLAGS, "-c", *source(name + ".c"), "-o", os.path.join(BIN, made + ".o")])


def build_common():
    for folder in (BIN, FAKE):
        os.makedirs(folder, exist_ok=True)
    for name in COMMON:
        build_object(name, name)
    try:
        build_object("counted", "counted")
    except subprocess.CalledProcessError:
        build_object("uncounted", "counted") # valgrind's header is missing
    run([cc(), *CFLAGS, "-shared", "-fPIC", "-fvisibility=hidden", "-Wl,-soname,libcuda.so.1", *source("driver/cuda.c", "driver/memory.c"),
         "-o", os.path.join(FAKE, "libcuda.so.1")])


named = set() # functions of the CUDA runtime that the peers call


def fake_runtime(callers):
    """Builds libcudart.so.12 over the fake driver, with every function that a peer calls. Functions that are not in cudart.c
    return 0."""
    made, version, rest = (os.path.join(FAKE, name) for name in ("libcudart.so.12", "map", "rest.c"))
    for caller in callers:
        listed = attempt("nm", ["nm", "-u", caller]) if caller.endswith(".o") else attempt("nm", ["nm", "-D", "-u", caller])
        named.update(re.findall(r" U (cuda[A-Z]\w*)", listed))
    mine = run([cc(), *CFLAGS, "-DRUNTIME_MAJOR=12", "-E", *source("driver/cudart.c")]).stdout
    with open(version, "w", encoding="utf-8") as out:
        out.write("libcudart.so.12 { global: *; };\n")
    with open(rest, "w", encoding="utf-8") as out:
        out.writelines("int %s(void) { return 0; }\n" % name for name in sorted(named - set(re.findall(r"\bcuda\w+", mine))))
    run([cc(), *CFLAGS, "-w", "-shared", "-fPIC", "-DRUNTIME_MAJOR=12", *source("driver/cudart.c"), rest, "-Wl,-soname,libcudart.so.12",
         "-Wl,--version-script=" + version, os.path.join(FAKE, "libcuda.so.1"), "-o", made])
    return made


def link(program, includes, libraries, *more):
    systems = [word for folder in includes for word in ("-isystem", folder)]
    paths = ["-Wl,-rpath," + os.path.dirname(library) for library in libraries]
    made = os.path.join(BIN, program + ".o")
    what = "lab/bench/peers/%s.cc does not build" % program
    attempt(what, [cxx(), "-std=c++17", "-O2", "-DNDEBUG", "-w", "-I", ROOT, *more, *systems, "-c", *source(program + ".cc"), "-o", made],
            timeout=600)
    runtime = fake_runtime([made] + libraries)
    attempt(what, [cxx(), made, *objects(), *libraries, runtime, "-Wl,-rpath-link," + FAKE, *paths, "-o", os.path.join(BIN, program), *TAIL],
            timeout=600)


def build_strata(options):
    library = built_library(options)
    run([cc(), *CFLAGS, *source("strata.c"), *objects(), library, "-Wl,-rpath," + os.path.dirname(library), "-o",
         os.path.join(BIN, "strata"), *TAIL])
    return "this tree, at %s" % revision()


def build_malloc(_):
    run([cc(), *CFLAGS, *source("malloc.c"), *objects(), "-o", os.path.join(BIN, "malloc"), *TAIL])
    return "the C library, %s" % " ".join(platform.libc_ver())


def build_torch(_):
    keep = re.compile(r"torch/(include/(c10|torch/headeronly)/|lib/libc10(_cuda)?\.so$)")
    folder = os.path.join(wheel(TORCH, keep.match), "torch")
    libraries = [os.path.join(folder, "lib", name) for name in ("libc10_cuda.so", "libc10.so")]
    link("torch", [os.path.join(folder, "include"), os.path.join(runtime_headers(), "include")], libraries)
    return "PyPI's wheel, %s: its libc10_cuda.so" % TORCH


def build_rmm(_):
    folder, logger = (os.path.join(wheel(name, everything), part) for name, part in ((RMM, "librmm"), (RAPIDS_LOGGER, "rapids_logger")))
    include = os.path.join(folder, "include")
    libraries = [os.path.join(folder, "lib64", "librmm.so"), os.path.join(logger, "lib64", "librapids_logger.so")]
    link("rmm", [include, os.path.join(include, "rapids"), os.path.join(logger, "include"), os.path.join(runtime_headers(), "include")],
         libraries, "-DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE")
    return "PyPI's wheel, %s, whose resources are headers" % RMM


def build_cub(_):
    folders, origin = toolkit_headers()
    link("cub", folders, [])
    with open(os.path.join(folders[0], "cub", "version.cuh"), encoding="utf-8") as text:
        number = int(re.search(r"define CUB_VERSION (\d+)", text.read()).group(1))
    return "%s, CUB %d.%d.%d" % (origin, number // 100000, number // 100 % 1000, number % 100)


BUILDERS = [("strata", build_strata), ("malloc", build_malloc), ("cub", build_cub), ("rmm", build_rmm), ("torch", build_torch)]
PACKAGES = {"libmimalloc.so*": "libmimalloc2.0", "libjemalloc.so*": "libjemalloc2"}


def build(options):
    """Returns {program: (its origin or None, the reason why it is missing or None)}."""
    os.makedirs(BUILD, exist_ok=True)
    build_common()
    had = {}
    for program, builder in BUILDERS:
        if options.only and program not in options.only:
            continue
        print("building " + program, flush=True)
        try:
            had[program] = (builder(options), None)
        except Missing as why:
            had[program] = (None, str(why))
    return had
