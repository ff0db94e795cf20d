"""The copy of the tree, and builds of it with one replaced file. So a mutant costs one compilation and few links."""
import collections
import json
import os
import re
import shlex
import subprocess

import bounded
import touched

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(ROOT, "build", "mutants")
TREE = os.path.join(WORK, "tree")
COMMAND = "strata"
HANG = 60  # least seconds after which a test hangs; a mutant that hangs costs them twice
STRICT = "-Werror=implicit-function-declaration"  # otherwise calls of undeclared functions would fail only in the linker


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def listed(root):
    told = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True)
    return told.stdout.split("\n")[:-1]


def copy_tree():
    """Copies only files that changed since the last call, so that the build of the copy is incremental."""
    names = [name for name in listed(ROOT) if os.path.isfile(os.path.join(ROOT, name))]
    for name in names:
        source, target = os.path.join(ROOT, name), os.path.join(TREE, name)
        with open(source, "rb") as file:
            content = file.read()
        if os.path.exists(target):
            with open(target, "rb") as file:
                if file.read() == content:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content)
        os.chmod(target, os.stat(source).st_mode)
    kept = set(names)
    for top, _, files in os.walk(TREE):
        for file in files:
            if os.path.relpath(os.path.join(top, file), TREE) not in kept:
                os.unlink(os.path.join(top, file))


def refused(text):
    """Returns the messages of the compiler for a text that does not compile, or an empty string if it compiles."""
    words = ["cc", "-std=gnu17", "-fsyntax-only", "-D_GNU_SOURCE", STRICT, "-I", ROOT, "-I", os.path.join(ROOT, "include"), "-x", "c", "-"]
    done = subprocess.run(words, input=text, capture_output=True, text=True)
    return done.stderr.strip() if done.returncode != 0 else ""


def build(name, preset):
    """Builds the test programs with the preset in a folder of that name. Returns the folder."""
    jobs, folder = str(os.cpu_count() or 2), os.path.join(WORK, name)
    presets = {each["name"]: each for each in json.loads(read(os.path.join(TREE, "CMakePresets.json")))["configurePresets"]}
    options = ["-D%s=%s" % option for option in presets[preset]["cacheVariables"].items()]
    subprocess.run(["cmake", "-S", TREE, "-B", folder, "-G", "Unix Makefiles", "-DSTRATA_BENCH=OFF", *options],
                   check=True, stdout=subprocess.DEVNULL)
    targets = ["test_" + program for program in touched.PROGRAMS]
    subprocess.run(["cmake", "--build", folder, "-j", jobs, "--target", *targets], check=True, stdout=subprocess.DEVNULL)
    return folder


def options_of_sanitizers():
    """Returns the options that .ci/run sets for the sanitizers."""
    return dict(re.findall(r"^export (\w+SAN_OPTIONS)=(\S+)$", read(os.path.join(TREE, ".ci/run")), re.M))


def plainly():
    """Returns a command prefix that disables address randomization. ThreadSanitizer of GCC 12 fails with the layouts of newer
    kernels."""
    words = ["setarch", os.uname().machine, "-R"]
    return words if subprocess.run(words + ["true"], stderr=subprocess.DEVNULL).returncode == 0 else []


class Built:
    """A build. `budget` is the processor seconds that a mutant's tests may take. `pace` is its time relative to the coverage
    build."""

    def __init__(self, name, preset, title, budget, pace):
        self.title, self.budget, self.pace = title, budget, pace
        self.before = plainly() if preset == "tsan" else []
        self.environment = dict(os.environ, **options_of_sanitizers())
        self.folder = build(name, preset)
        self.commands, self.links = collections.defaultdict(list), {}
        for entry in json.loads(read(os.path.join(self.folder, "compile_commands.json"))):
            words = [word for word in shlex.split(entry["command"]) if os.path.basename(word) != "ccache"]
            out = words.index("-o") + 1
            object_file = os.path.normpath(os.path.join(entry["directory"], words[out]))
            if not touched.NOTES.search(object_file):
                continue  # no test program links this object
            self.commands[os.path.relpath(entry["file"], TREE)].append((words, entry["directory"], object_file))
        for program in touched.PROGRAMS:
            folder = os.path.join(self.folder, "tests", program)
            path = os.path.join(folder, "CMakeFiles", "test_%s.dir" % program, "link.txt")
            if os.path.exists(path):
                self.links[program] = (shlex.split(read(path)), folder)
        path = os.path.join(self.folder, "CMakeFiles", "strata_command.dir", "link.txt")
        self.links[COMMAND] = (shlex.split(read(path)), self.folder)

    def compile(self, name, text, folder, extra=()):
        """Returns {object file: its replacement, compiled from the text}, or None if it does not compile."""
        source = os.path.join(folder, os.path.basename(name))
        with open(source, "w", encoding="utf-8") as file:
            file.write(text)
        objects = {}
        for number, (words, directory, object_file) in enumerate(self.commands[name]):
            target = os.path.join(folder, "%d.o" % number)
            words = list(words)
            words[words.index("-o") + 1] = target
            words[words.index("-c") + 1] = source
            done = subprocess.run(words + ["-Wno-error", STRICT, *extra], cwd=directory, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                return None
            objects[object_file] = target
        return objects

    def link(self, program, objects, folder):
        if program in touched.BY_COMMAND:
            self.link_one(COMMAND, objects, folder, COMMAND)
        return self.link_one(program, objects, folder, "test_" + program)

    def link_one(self, program, objects, folder, name):
        words, directory = self.links[program]
        target = os.path.join(folder, name)
        changed = [objects.get(os.path.normpath(os.path.join(directory, word)), word) for word in words]
        changed[changed.index("-o") + 1] = target
        subprocess.run(changed, cwd=directory, check=True)
        return target

    def whole(self, program):
        """Returns the program without a mutant."""
        return os.path.join(self.links[program][1], "test_" + program)

    def test(self, path, chosen, folder, seconds):
        """Runs tests with bounded.run(). If the folder has a command, the test program uses that one."""
        command, environment = os.path.join(os.path.dirname(path), COMMAND), self.environment
        if os.path.exists(command):
            environment = dict(environment, STRATA_TEST_COMMAND=command)
        return bounded.run(self.before + [path, "--gtest_filter=" + ":".join(chosen), "--gtest_fail_fast", "--gtest_brief=1"], folder,
                           max(HANG, 6 * seconds), environment)


def is_equivalent(plain, name, text, folder):
    """Returns True if the optimizer makes the same code and data from the text and from the current file."""
    codes = []
    for one in (text, read(os.path.join(TREE, name))):
        objects = plain.compile(name, one, folder, ("-O2", "-g0"))
        if not objects:
            return False
        told = subprocess.run(["objdump", "-drs", next(iter(objects.values()))], capture_output=True, text=True)
        codes.append(told.stdout)
    return codes[0] == codes[1]
