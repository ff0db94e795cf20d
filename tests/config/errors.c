/* Everything wrong is refused at its place, with what to write instead. */
#include "tests/config/refused.h"

TEST(errors, yaml_itself) {
    expect_refused("", 1, 1, "nothing in it", "write a strategy");
    expect_refused("# only a comment\n", 1, 1, "nothing in it", "write");
    expect_refused("stack: [system\nversion: 1\n", 2, 8, "did not find expected ',' or ']'", "brackets");
    expect_refused("stack:\n\t- system\n", 2, 1, "a tab stands here", "write blanks");
    expect_refused("strategy: \"open\nstack: [system]\n", 3, 1, "unexpected end of stream", "quotes");
    expect_refused("stack: [system]\nstrategy: \xff\xfe\n", 2, 11, "UTF-8", "write plain text in UTF-8");
    expect_refused("strategy: \xc3\xa9\xff\n", 1, 12, "UTF-8", "write plain text in UTF-8");
    expect_refused("strategy: \x01x\n", 1, 11, "control characters", "write plain text");
    expect_refused("- system\n", 1, 1, "a strategy is a mapping", "write keys");
    expect_refused("system\n", 1, 1, "a strategy is a mapping", "write keys");
    expect_refused("stack: [system]\n---\nstack: [system]\n", 2, 1, "a second document", "one strategy");
    expect_refused("a: &x [system]\nstack: *x\n", 2, 8, "aliases", "write the value out");
    expect_refused("strategy: !!str a\n", 1, 11, "tags", "write the plain value");
    expect_refused("stack: !list [system]\n", 1, 8, "tags", "take this one out");
    expect_refused("? [a, b]\n: c\n", 1, 3, "cannot be a key", "write a word");
    expect_refused("stack: [system]\nversion: 1\nstack: [system]\n", 3, 1, "\"stack\" stands here twice, first in line 1",
                   "take one out");
    expect_refused("strategy: \"a\\0b\"\n", 1, 11, "NUL byte", "take it out");
    expect_refused("strategy: \"a\\e[31mb\"\n", 1, 11, "control character", "take it out");
    expect_refused("\"a\\nb\": 1\n", 1, 1, "this is no key", "write a word");
}

TEST(errors, directives) {
    expect_refused("%TAG ! !a\n---\nstack: [system]\n", 1, 1, "\"%TAG\"", "take this line out");
    expect_refused("# mine\n%YAML 1.1\n%TAG ! !a\n---\nstack: [system]\n", 3, 1, "\"%TAG\"", "take this line out");
    expect_refused("stack: [system]\n...\n\n%TAG ! !a\n---\na: 1\n", 4, 1, "\"%TAG\"", "take this line out");
    expect_refused("%MINE 1\n---\nstack: [system]\n", 1, 1, "directives", "take this line out");
    expect_refused("%YAML 2.0\n---\nstack: [system]\n", 1, 1, "YAML", "check");
    strata_strategy_delete(load_text("# mine\n%YAML 1.1\n---\nstack: [system]\n...\n# %TAG\n"));
    strata_strategy_delete(load_text("---\ndescription: |\n %TAG ! !a\nstrategy: \"a\n%TAG ! !a\"\nstack: [system]\n"));
}

TEST(errors, keys_of_a_strategy) {
    expect_refused("version: 10\nstack: [system]\n", 1, 10, "this Strata reads strategies of version 1, not \"10\"",
                   "write version: 1");
    expect_refused("version: 1\nstak: [system]\n", 2, 1, "no key \"stak\"", "write stack");
    expect_refused("zzzzzzzz: 1\n", 1, 1, "no key \"zzzzzzzz\"", "write one of version, strategy,");
    expect_refused("version: 2\n", 1, 10, "version 1, not \"2\"", "write version: 1");
    expect_refused("version:\n", 1, 1, "wants one value", "write version: 1");
    expect_refused("strategy: [a]\n", 1, 1, "wants one value", "write strategy: training");
    expect_refused("strategy: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", 1, 11, "longer than 64",
                   "shorter");
}

TEST(errors, devices) {
    expect_refused("devices: gpuu\n", 1, 10, "\"gpuu\" names no device", "write gpu");
    expect_refused("devices: tpu:0\n", 1, 10, "names no device", "gpu");
    expect_refused("devices: gpu:x\n", 1, 10, "\"x\" is no device's number", "write gpu:0");
    expect_refused("devices: gpu:16\n", 1, 10, "no device's number", "write gpu:0 to gpu:15");
    expect_refused("devices: gpu:1000\n", 1, 10, "no device's number", "write gpu:0 to gpu:15");
    expect_refused("devices: sim:h100x17\n", 1, 10, "no profile \"h100x17\"", "x2 to x16 after it");
    strata_strategy_delete(load_text("devices: gpu:15\n"));
    strata_strategy_delete(load_text("devices: sim:h100x16\n"));
    expect_refused("devices: sim:h10\n", 1, 10, "no profile \"h10\"", "write h100");
    expect_refused("devices: [gpu]\n", 1, 1, "wants one value", "write devices: gpu");
}

TEST(errors, places) {
    expect_refused("places: [pinned]\n", 1, 9, "a mapping of places", "write places: {pinned:");
    expect_refused("places:\n  pined: [system]\n", 2, 3, "no place \"pined\"", "write pinned");
    expect_refused("places:\n  gpu: [system]\n", 2, 3, "stands at the top", "write stack:");
    expect_refused("places:\n  pinned:\n    - system: {memory: device}\n", 3, 24, "cannot serve the place pinned",
                   "write memory: pinned");
    expect_refused("stack:\n  - system: {memory: host}\n", 2, 22, "cannot serve the place gpu", "write memory: device");
}

TEST(errors, layers) {
    expect_refused("stack: system\n", 1, 8, "a stack is a list", "write [retry,");
    expect_refused("stack: []\n", 1, 8, "at least one layer", "write [system]");
    expect_refused("stack:\n  - sistem\n", 2, 5, "no layer \"sistem\"", "write system");
    expect_refused("stack:\n  - wwwwwwww: {}\n", 2, 5, "no layer \"wwwwwwww\"", "write one of retry, stream_safe, auto_growth");
    expect_refused("stack:\n  -\n  - system\n", 2, 4, "a layer is missing", "write its name");
    expect_refused("stack:\n  - {}\n  - system\n", 2, 5, "a layer is missing", "write its name");
    expect_refused("stack:\n  - [system]\n", 2, 5, "a layer is missing", "write its name");
    expect_refused("stack:\n  - retry: {}\n    system: {}\n", 3, 5, "\"system\" is a second", "\"- system\"");
    expect_refused("stack:\n  - auto_growth:\n    chunk_size: 1MiB\n  - system\n", 3, 5, "stands beside \"auto_growth\", not in it",
                   "write - auto_growth: {chunk_size:");
    expect_refused("stack:\n  - auto_growth: {name: a}\n  - auto_growth: {name: a}\n  - system\n", 3, 5,
                   "two layers are called \"a\"", "write another name");
    expect_refused("stack:\n  - auto_growth: {name: pinned}\n  - system\n", 2, 25, "no name for a layer", "write up to 64");
    expect_refused("stack:\n  - auto_growth: {name: stack}\n  - system\n", 2, 25, "no name for a layer", "write up to 64");
    expect_refused("stack:\n  - auto_growth: {name: a.b}\n  - system\n", 2, 25, "no name for a layer", "write up to 64");
}

TEST(errors, options) {
    expect_refused("stack:\n  - auto_growth: {chunk_syze: 1MiB}\n  - system\n", 2, 19, "no option \"chunk_syze\"",
                   "write chunk_size");
    expect_refused("stack:\n  - retry: {zzzzzz: 1}\n  - system\n", 2, 13, "no option \"zzzzzz\"",
                   "write one of timeout, wait_first");
    expect_refused("stack:\n  - auto_growth: {chunk_size: 20MB}\n  - system\n", 2, 31, "no unit \"MB\"", "write 20MiB");
    expect_refused("stack:\n  - auto_growth: {chunk_size: }\n  - system\n", 2, 19, "wants one value", "write chunk_size: 0");
    expect_refused("stack:\n  - auto_growth: {chunk_size: [1]}\n  - system\n", 2, 31, "wants one value", "write chunk_size: 0");
    expect_refused("stack:\n  - auto_growth: {order: adress}\n  - system\n", 2, 26, "no choice", "write address");
    expect_refused("stack:\n  - retry: {timeout: 100}\n  - system\n", 2, 22, "has no unit", "100ms");
    expect_refused("stack:\n  - retry: {wait_first: yes}\n  - system\n", 2, 25, "neither true nor false", "write true");
    expect_refused("stack:\n  - auto_growth: {chunk_size: 99TiB}\n  - system\n", 2, 31, "too large",
                   "write a value from 0 to 16TiB");
    expect_refused("stack:\n  - auto_growth: 20MiB\n  - system\n", 2, 18, "are a mapping", "write - auto_growth: {chunk_size: 0}");
    expect_refused("stack:\n  - stat: {every: 1}\n  - system\n", 2, 12, "\"stat\" has no options", "take \"every\" out");
    expect_refused("stack:\n  - system: device\n", 2, 13, "are a mapping", "write - system: {memory: place}");
    expect_refused("stack:\n  - stat: always\n  - system\n", 2, 11, "are a mapping", "write - stat: {}");
}

TEST(errors, pools_that_do_not_fit_one_another) {
    expect_refused("stack:\n  - auto_growth: {split_pools: true, small_pool_size: 1MiB}\n  - system\n", 2, 32,
                   "auto_growth.split_pools: split_pools and small_pool_size are two ways to divide the chunks",
                   "write one of them");
    expect_refused("stack:\n  - auto_growth: {small_chunk_size: 2MiB}\n  - system\n", 2, 37, "there is no small pool",
                   "write small_pool_size: 1MiB");
    expect_refused("stack:\n  - auto_growth: {small_preallocate: 2MiB}\n  - system\n", 2, 38,
                   "auto_growth.small_preallocate: there is no small pool", "write small_pool_size: 1MiB");
    expect_refused("stack:\n  - auto_growth: {warm_up_steps: 1.5}\n  - system\n", 2, 34, "1.5", "");
}

TEST(errors, options_that_do_not_fit_the_place) {
    expect_refused("stack:\n  - auto_growth: {alignment: 300}\n  - system\n", 2, 30, "auto_growth.alignment: 300 is no alignment",
                   "write a power of two of at least 256");
    expect_refused("stack:\n  - auto_growth: {name: a, alignment: 64}\n  - system\n", 2, 39, "a.alignment: 64 is no alignment",
                   "at least 256");
    strata_strategy_delete(load_text("places:\n  host:\n    - auto_growth: {alignment: 64}\n    - system\n"));
}

TEST(errors, an_alignment_that_nothing_below_serves) {
    expect_refused("stack:\n  - auto_growth: {alignment: 1024}\n  - system\n", 2, 30,
                   "auto_growth.alignment: what \"auto_growth\" gets must begin at multiples of 1KiB, and \"system\" below it "
                   "serves multiples of 256",
                   "put aligned between them");
    expect_refused("stack:\n  - auto_growth: {alignment: 512}\n  - stat\n  - buffered\n  - cuda_malloc_async\n", 2, 30,
                   "\"stat\" below it serves multiples of 256", "put aligned between them");
    expect_refused("stack:\n  - aligned\n  - auto_growth: {alignment: 512}\n  - naive_best_fit: {min_block: 4KiB}\n  - system\n", 3,
                   30, "\"naive_best_fit\" below it serves multiples of 256", "put aligned between them");
    expect_refused(
        "stack:\n  - auto_growth: {alignment: 512}\n  - fallback: {stacks: [[aligned, system], [auto_growth, system]]}\n", 2, 30,
        "\"fallback\" below it serves multiples of 256", "put aligned between them");
    expect_refused("places:\n  managed:\n    - auto_growth: {alignment: 2MiB}\n    - system\n", 3, 32, "multiples of 2MiB",
                   "put aligned between them");
}

TEST(errors, alignments_that_what_stands_below_serves) {
    static const char *const right[] = {
        "stack:\n  - auto_growth: {alignment: 1KiB}\n  - aligned\n  - system\n",
        "stack:\n  - auto_growth: {alignment: 1KiB}\n  - stat\n  - buffered\n  - aligned: {from: 1MiB}\n  - cuda_malloc_async\n",
        "stack:\n  - auto_growth: {name: a, alignment: 1KiB}\n  - auto_growth: {name: b, alignment: 1KiB}\n  - aligned\n  - system\n",
        "stack:\n  - auto_growth: {alignment: 512}\n  - bfc\n  - system\n",
        "stack:\n  - auto_growth: {alignment: 512}\n  - fallback: {stacks: [[aligned, system], [system: {memory: pinned}]]}\n",
        "places:\n  pinned:\n    - auto_growth: {alignment: 64KiB}\n    - system\n",
        "places:\n  host:\n    - auto_growth: {alignment: 4KiB}\n    - system\n",
    };
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) strata_strategy_delete(load_text(right[i]));
}

/* Whether a layer is shared is a matter of its option `streams`, and so is what may stand below it. */
TEST(errors, what_every_stream_has_may_stand_below_what_every_stream_has) {
    static const char *const layers[] = {"naive_best_fit", "thread_local"};
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        char text[200], what[100];
        snprintf(text, sizeof text, "stack:\n  - %s: {streams: own}\n  - auto_growth\n  - system\n", layers[i]);
        strata_strategy_delete(load_text(text));
        snprintf(text, sizeof text, "stack:\n  - %s: {streams: ignored}\n  - auto_growth\n  - system\n", layers[i]);
        snprintf(what, sizeof what, "\"%s\" is shared by all streams", layers[i]);
        expect_refused(text, 2, 5, what, "put \"auto_growth\" above");
    }
}

TEST(errors, order_is_told_at_the_upper_layer) {
    expect_refused("stack:\n  - retry\n  - auto_growth\n", 3, 5, "\"auto_growth\" has nothing below it", "- system");
    expect_refused("stack:\n  - system\n  - retry\n  - system\n", 2, 5,
                   "\"system\" is a source: nothing can stand below it, and \"retry\" does", "end the stack");
    expect_refused("stack:\n  - auto_growth\n  - retry\n  - system\n", 2, 5,
                   "\"auto_growth\" holds a lock and stands above \"retry\"", "put \"retry\" above \"auto_growth\"");
    expect_refused("places:\n  pinned:\n    - stream_safe\n    - auto_growth: {name: small}\n    - retry\n    - system\n", 4, 7,
                   "\"small\" holds a lock", "put \"retry\" above \"small\"");
    expect_refused("stack:\n- fault\n- fault\n- fault\n- fault\n- fault\n- fault\n- fault\n- fault\n- system\n", 10, 3,
                   "layer 9 since the top", "take a layer out");
    expect_refused("stack:\n  - retry\n  - fault\n  - retry\n  - system\n", 4, 5,
                   "says what \"retry\" above it in the same stack says", "take one out");
}

TEST(errors, extends) {
    expect_refused("extends: .yml\n", 1, 10, "\".yml\" is neither a preset nor a file", "a file's path");
    expect_refused("extends: .yaml\n", 1, 10, "\".yaml\" is neither a preset nor a file", "a file's path");
    expect_refused("extends: stratta\n", 1, 10, "\"stratta\" is neither a preset nor a file", "write strata");
    expect_refused("extends: no/such.yaml\n", 1, 10, "no/such.yaml: the file cannot be read", "write a preset's name");
    expect_refused("extends: [strata]\n", 1, 1, "wants one value", "write extends: strata");
}
