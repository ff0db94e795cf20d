#!/usr/bin/env bash
# One part of the test of the installed package (tests/install/CMakeLists.txt sets the environment). `prefix` comes first.
set -euo pipefail
part=$1
prefix=$HERE/installed
work=$HERE/$part
rm -rf "$work"
mkdir -p "$work"
cd "$work"
export PKG_CONFIG_PATH=$prefix/$LIBDIR/pkgconfig
# The library is found by rpath or by this, never because one is installed on the machine already.
export LD_LIBRARY_PATH=

# The programs: the examples, and each program in C or C++ that README.md and docs/integrations.md show.
programs() {
    mkdir -p programs
    cp "$SOURCE"/examples/*.c "$SOURCE"/examples/*.cpp programs/
    for page in README.md docs/integrations.md; do
        awk -v page="$(basename "${page%.md}" | tr A-Z a-z)" '/^```(c|cpp)$/ { n++; kind = substr($0, 4); inside = 1; next } /^```/ { inside = 0 }
             inside { print > ("programs/" page "_" n "." kind) }' "$SOURCE/$page"
    done
    grep -l 'int main(' programs/*.c programs/*.cpp
}

build() { # build PROGRAM ARGUMENT...: by the compiler of its language
    case $1 in
    *.cpp) "$CXX" -std=c++17 -Wall -Wextra -pedantic -Werror "$@" ;;
    *) "$CC" -std=c17 "$@" ;;
    esac
}

run() { # run PROGRAM: on the simulated device, from an empty environment of Strata's
    echo "-- $1"
    env -u STRATA_STRATEGY -u STRATA_SET "$@"
}

# Compares the report in examples/README.md with the program's own. The time that recovery took differs from run to run.
report_is_shown() { # report_is_shown PROGRAM
    awk '$0 == "    $ ./out_of_memory" { inside = 1; next } inside && !/^    / { exit } inside { print substr($0, 5) }' \
        "$SOURCE/examples/README.md" | sed 's/it took .*/it took TIME/' >shown.txt
    run "$1" | tail -n +2 | sed 's/it took .*/it took TIME/' >printed.txt
    [ -s shown.txt ] && diff shown.txt printed.txt || { echo "examples/README.md shows another report of examples/out_of_memory.c"; exit 1; }
}

# The project's own first page, and of the pages and examples that the pages name each one. DOCDIR is the folder of this.
pages_hold_together() {
    cmp "$SOURCE/traces/NOTICE" "$1/traces/NOTICE"
    cmp "$SOURCE/README.md" "$1/README.md" || { echo "another README.md is installed"; return 1; }
    for page in "$1"/README.md "$1"/docs/*.md "$1"/examples/README.md; do
        for named in $(grep -oE '\b(docs|examples|traces)/[a-z_0-9-]+\.(md|c|cpp|csv|csv\.gz)\b' "$page"); do
            [ -e "$1/$named" ] || { echo "$page names $named, which is not installed"; return 1; }
        done
        for named in $(grep -oE '\]\([a-z_0-9/-]+\.(md|c)' "$page" | cut -c3-); do
            [ -e "$(dirname "$page")/$named" ] || { echo "$page leads to $named, which is not installed"; return 1; }
        done
    done
}

case $part in
prefix)
    rm -rf "$prefix"
    "$CMAKE" --install "$BUILD" --prefix "$prefix" >install.log
    for file in include/strata/strata.h "$LIBDIR/libstrata.so" "$LIBDIR/libstrata.a" "$LIBDIR/pkgconfig/strata.pc" \
        "$LIBDIR/cmake/strata/strataConfig.cmake" share/strata/presets/strata.yaml; do
        [ -e "$prefix/$file" ] || { echo "not installed: $file"; exit 1; }
    done
    pages_hold_together "$prefix/$DOCDIR"
    # A path begins where no other goes on: the project may lie in /strata, and lib/cmake/strata is no part of it.
    begins='(?:(?<![\w.})\/-])|(?<=-[IL]))'
    if grep -rlP "$begins(?:\\Q$SOURCE\\E|\\Q$prefix\\E)(?![\w.-])" "$prefix" --include='*.h' --include='*.pc' --include='*.cmake'; then
        echo "the files above name a folder of this machine"
        exit 1
    fi
    ;;
headers) # each header by itself, as C and as C++, under the strictest warnings
    for header in "$prefix"/include/strata/*.h; do
        echo "#include <strata/$(basename "$header")>" >one.c
        # shellcheck disable=SC2046
        "$CC" -std=c17 -Wall -Wextra -Wconversion -Wstrict-prototypes -pedantic -Werror $(pkg-config --cflags strata) -c one.c
        # shellcheck disable=SC2046
        "$CXX" -std=c++17 -x c++ -Wall -Wextra -pedantic -Werror $(pkg-config --cflags strata) -c one.c
    done
    echo "#include <strata/strata.hpp>" >one.cpp
    # shellcheck disable=SC2046
    build one.cpp $(pkg-config --cflags strata) -c
    for header in memory_resource rmm; do [ -e "$prefix/include/strata/$header.hpp" ]; done # want headers of others: tests/cpp
    ;;
pkg_config)
    static=$(pkg-config --static --libs strata)
    for program in $(programs); do
        name=$(basename "${program%.*}")
        # shellcheck disable=SC2046
        build "$program" $(pkg-config --cflags --libs strata) -o "$name.shared"
        LD_LIBRARY_PATH=$prefix/$LIBDIR run "./$name.shared"
        if [ "$name" = out_of_memory ]; then
            LD_LIBRARY_PATH=$prefix/$LIBDIR report_is_shown "./$name.shared"
        fi
        # shellcheck disable=SC2046,SC2086
        build "$program" $(pkg-config --cflags strata) ${static/-lstrata/-l:libstrata.a} -o "$name.static"
        if ldd "$name.static" | grep -q libstrata; then echo "$name.static needs libstrata.so"; exit 1; fi
        run "./$name.static"
    done
    ;;
find_package)
    programs >programs.list
    cat >CMakeLists.txt <<'CMAKE'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C CXX)
set(CMAKE_CXX_STANDARD 17)
find_package(strata 0.1 REQUIRED)
file(GLOB programs programs/*.c programs/*.cpp)
foreach(program ${programs})
  get_filename_component(name ${program} NAME_WE)
  add_executable(${name}.shared ${program})
  target_link_libraries(${name}.shared PRIVATE strata::strata)
  add_executable(${name}.static ${program})
  target_link_libraries(${name}.static PRIVATE strata::strata_static)
endforeach()
CMAKE
    for program in programs/*; do
        grep -q "^$program\$" programs.list || rm "$program"
    done
    "$CMAKE" -S . -B build -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" -DCMAKE_PREFIX_PATH="$prefix" >configure.log || { cat configure.log; exit 1; }
    "$CMAKE" --build build >build.log || { cat build.log; exit 1; }
    for program in build/*.shared build/*.static; do run "$program"; done
    ;;
outside) # a layer of another folder: built, conformed, named by a strategy, seen where it took part
    # shellcheck disable=SC2046
    "$CC" -std=c17 -Wall -Wextra -Wconversion -pedantic -Werror -shared -fPIC "$SOURCE/examples/my_layer.c" \
        $(pkg-config --cflags strata) -o libmy_layer.so
    # shellcheck disable=SC2046
    "$CC" -std=c17 -shared -fPIC "$SOURCE/examples/my_layer.c" $(pkg-config --cflags --libs strata) -o liblinked.so
    run "$prefix/bin/strata" conform libmy_layer.so >conform.txt || { cat conform.txt; exit 1; }
    grep -q '^ok   my_quota_over_cache: random_program$' conform.txt
    LD_LIBRARY_PATH=$prefix/$LIBDIR run "$prefix/bin/strata" conform ./liblinked.so | grep -E ' 0 failed(, [0-9]+ skipped)?$'
    # A cache, by what the header offers.
    # shellcheck disable=SC2046
    "$CC" -std=c17 -O2 -Wall -Wextra -Wconversion -pedantic -Werror -shared -fPIC "$SOURCE/examples/segregated_fit.c" \
        $(pkg-config --cflags strata) -o libsegregated_fit.so
    run "$prefix/bin/strata" conform libsegregated_fit.so | grep -E ' 0 failed(, [0-9]+ skipped)?$'
    sed "s/OBJECT/libmy_layer.so/" "$SOURCE/tests/install/outside.yaml" >mine.yaml
    sed "s/OBJECT/liblinked.so/" "$SOURCE/tests/install/outside.yaml" >linked.yaml
    run "$prefix/bin/strata" explain --allow-code mine.yaml | grep -A1 'my_quota: decorator of scope stream' | grep 'most  *64MiB  *mine.yaml:5:34'
    if run "$prefix/bin/strata" explain mine.yaml 2>errors.txt; then echo "code was loaded without leave"; exit 1; fi
    grep '^mine.yaml:3:1: ' errors.txt
    program=$SOURCE/tests/install/outside.c
    # shellcheck disable=SC2046
    "$CC" -std=c17 "$program" $(pkg-config --cflags --libs strata) -o user.shared
    LD_LIBRARY_PATH=$prefix/$LIBDIR run ./user.shared mine.yaml
    LD_LIBRARY_PATH=$prefix/$LIBDIR run ./user.shared linked.yaml
    # What torture finds of a faulty layer is a program that builds here and shows it.
    # shellcheck disable=SC2046
    "$CC" -std=c17 -shared -fPIC -I"$SOURCE" "$SOURCE/tests/modules/faulty.c" $(pkg-config --cflags strata) -o libfaulty.so
    if run "$prefix/bin/strata" torture --programs 4 --layers libfaulty.so >torture.txt; then echo "nothing was found"; exit 1; fi
    # A drawn stack may also have the layer that ends the process, so the first program without it is built.
    awk '/^\/\* strata torture / { inside = 1; text = "" } inside { text = text $0 "\n" }
         inside && /^}$/ { inside = 0; if (text !~ /- (crashing|partial)/) { printf "%s", text; exit } }' torture.txt >found.c
    grep -q -- '--layers libfaulty.so' found.c
    # shellcheck disable=SC2046
    "$CC" -std=c17 -Wall -Wextra -pedantic -Werror found.c $(pkg-config --cflags --libs strata) -o found
    if LD_LIBRARY_PATH=$prefix/$LIBDIR run ./found >found.txt; then echo "the program shows nothing"; exit 1; fi
    grep 'not all memory went back to a device' found.txt
    # A program that holds the archive shows its objects nothing unless told to: a second copy of the library is refused.
    static=$(pkg-config --static --libs strata)
    # shellcheck disable=SC2046,SC2086
    "$CC" -std=c17 -rdynamic "$program" $(pkg-config --cflags strata) ${static/-lstrata/-l:libstrata.a} -o user.static
    run ./user.static mine.yaml
    # shellcheck disable=SC2046,SC2086
    "$CC" -std=c17 "$program" $(pkg-config --cflags strata) ${static/-lstrata/-l:libstrata.a} -o user.hidden
    if LD_LIBRARY_PATH=$prefix/$LIBDIR run ./user.hidden linked.yaml >hidden.txt; then echo "two copies at work"; exit 1; fi
    grep 'copy of Strata' hidden.txt
    # The library comes in late, as in an interpreter, and the layer after it.
    "$CC" -std=c17 -DLATE="\"$prefix/$LIBDIR/libstrata.so\"" $(pkg-config --cflags strata) "$program" -ldl -o user.late
    run ./user.late linked.yaml
    ;;
command)
    moved=$work/elsewhere
    cp -r "$prefix" "$moved"
    run "$moved/bin/strata" layers >layers.txt
    grep -q auto_growth layers.txt
    run "$moved/bin/strata" run --report -- "$moved/bin/strata" version >preloaded.txt 2>&1
    grep -q 'no memory request reached Strata' preloaded.txt
    run "$moved/bin/strata" check "$moved"/share/strata/presets/*.yaml
    ;;
esac
