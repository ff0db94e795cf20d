/* Everything wrong is refused at its place, with what to write instead. */
#include "tests/config/refused.h"

#define OVER_LINE "the value spans lines or contains a tab"

static const struct {
    const char *yaml;
    unsigned line, column;
    const char *what, *write;
} refusals[] = {
    /* YAML itself. */
    {"", 1, 1, "the file is empty", "write a strategy"},
    {"# only a comment\n", 1, 1, "the file is empty", "write"},
    {"stack: [system\nversion: 1\n", 2, 8, "did not find expected ',' or ']'", "brackets"},
    {"stack:\n\t- system\n", 2, 1, "a tab is here", "write spaces"},
    {"strategy: \"open\nstack: [system]\n", 3, 1, "unexpected end of stream", "quotes"},
    {"stack: [system]\nstrategy: \xff\xfe\n", 2, 11, "UTF-8", "write plain text in UTF-8"},
    {"strategy: \xc3\xa9\xff\n", 1, 12, "UTF-8", "write plain text in UTF-8"},
    {"strategy: \x01x\n", 1, 11, "control characters", "write plain text"},
    {"- system\n", 1, 1, "a strategy must be a mapping", "write keys"},
    {"system\n", 1, 1, "a strategy must be a mapping", "write keys"},
    {"stack: [system]\n---\nstack: [system]\n", 2, 1, "a second document", "one strategy"},
    {"a: &x [system]\nstack: *x\n", 2, 8, "aliases", "write the value itself"},
    {"strategy: !!str a\n", 1, 11, "tags", "write the plain value"},
    {"stack: !list [system]\n", 1, 8, "tags", "remove this one"},
    {"? [a, b]\n: c\n", 1, 3, "cannot be a key", "write a word"},
    {"stack: [system]\nversion: 1\nstack: [system]\n", 3, 1, "\"stack\" is here twice, first in line 1", "remove one"},
    {"strategy: \"a\\0b\"\n", 1, 11, "NUL byte", "remove it"},
    {"strategy: \"a\\e[31mb\"\n", 1, 11, "control character", "remove it"},
    {"\"a\\nb\": 1\n", 1, 1, "this is not a key", "write a word"},
    /* Directives. */
    {"%TAG ! !a\n---\nstack: [system]\n", 1, 1, "\"%TAG\"", "remove this line"},
    {"# mine\n%YAML 1.1\n%TAG ! !a\n---\nstack: [system]\n", 3, 1, "\"%TAG\"", "remove this line"},
    {"stack: [system]\n...\n\n%TAG ! !a\n---\na: 1\n", 4, 1, "\"%TAG\"", "remove this line"},
    {"%MINE 1\n---\nstack: [system]\n", 1, 1, "directives", "remove this line"},
    {"%YAML 2.0\n---\nstack: [system]\n", 1, 1, "YAML", "check"},
    /* Keys of a strategy. */
    {"version: 10\nstack: [system]\n", 1, 10, "this Strata reads strategies of version 1, not \"10\"", "write version: 1"},
    {"version: 1\nstak: [system]\n", 2, 1, "no key \"stak\"", "write stack"},
    {"zzzzzzzz: 1\n", 1, 1, "no key \"zzzzzzzz\"", "write one of version, strategy,"},
    {"version: 2\n", 1, 10, "version 1, not \"2\"", "write version: 1"},
    {"version:\n", 1, 1, "needs one value", "write version: 1"},
    {"strategy: [a]\n", 1, 1, "needs one value", "write strategy: training"},
    {"strategy: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", 1, 11, "longer than 64", "shorter"},
    /* Devices. */
    {"devices: gpuu\n", 1, 10, "\"gpuu\" is not a device", "write gpu"},
    {"devices: tpu:0\n", 1, 10, "is not a device", "gpu"},
    {"devices: gpu:x\n", 1, 10, "\"x\" is not a device number", "write gpu:0"},
    {"devices: gpu:16\n", 1, 10, "is not a device number", "write gpu:0 to gpu:15"},
    {"devices: gpu:1000\n", 1, 10, "is not a device number", "write gpu:0 to gpu:15"},
    {"devices: sim:h100x17\n", 1, 10, "no profile \"h100x17\"", "x2 to x16 after it"},
    {"devices: sim:h10\n", 1, 10, "no profile \"h10\"", "write h100"},
    {"devices: [gpu]\n", 1, 1, "needs one value", "write devices: gpu"},
    /* Places. */
    {"places: [pinned]\n", 1, 9, "a mapping of places", "write places: {pinned:"},
    {"places:\n  pined: [system]\n", 2, 3, "no place \"pined\"", "write pinned"},
    {"places:\n  gpu: [system]\n", 2, 3, "belongs at the top level", "write stack:"},
    {"places:\n  pinned:\n    - system: {memory: device}\n", 3, 24, "cannot serve the place pinned", "write memory: pinned"},
    {"stack:\n  - system: {memory: host}\n", 2, 22, "cannot serve the place gpu", "write memory: device"},
    /* Layers. */
    {"stack: system\n", 1, 8, "a stack must be a list", "write [retry,"},
    {"stack: []\n", 1, 8, "at least one layer", "write [system]"},
    {"stack:\n  - sistem\n", 2, 5, "no layer \"sistem\"", "write system"},
    {"stack:\n  - wwwwwwww: {}\n", 2, 5, "no layer \"wwwwwwww\"", "write one of retry, stream_safe, auto_growth"},
    {"stack:\n  -\n  - system\n", 2, 4, "a layer is missing", "write its name"},
    {"stack:\n  - {}\n  - system\n", 2, 5, "a layer is missing", "write its name"},
    {"stack:\n  - [system]\n", 2, 5, "a layer is missing", "write its name"},
    {"stack:\n  - retry: {}\n    system: {}\n", 3, 5, "\"system\" is a second", "\"- system\""},
    {"stack:\n  - auto_growth:\n    chunk_size: 1MiB\n  - system\n", 3, 5, "is beside \"auto_growth\", not in it",
     "write - auto_growth: {chunk_size:"},
    {"stack:\n  - auto_growth: {name: a}\n  - auto_growth: {name: a}\n  - system\n", 3, 5, "two layers are named \"a\"",
     "rename one"},
    {"stack:\n  - auto_growth: {name: pinned}\n  - system\n", 2, 25, "not a valid layer name", "write up to 64"},
    {"stack:\n  - auto_growth: {name: stack}\n  - system\n", 2, 25, "not a valid layer name", "write up to 64"},
    {"stack:\n  - auto_growth: {name: a.b}\n  - system\n", 2, 25, "not a valid layer name", "write up to 64"},
    /* Options. */
    {"stack:\n  - auto_growth: {chunk_syze: 1MiB}\n  - system\n", 2, 19, "no option \"chunk_syze\"", "write chunk_size"},
    {"stack:\n  - retry: {zzzzzz: 1}\n  - system\n", 2, 13, "no option \"zzzzzz\"", "write one of timeout, wait_first"},
    {"stack:\n  - auto_growth: {chunk_size: 20MB}\n  - system\n", 2, 31, "unknown unit \"MB\"", "write 20MiB"},
    {"stack:\n  - auto_growth: {chunk_size: }\n  - system\n", 2, 19, "needs one value", "write chunk_size: 0"},
    {"stack:\n  - auto_growth: {chunk_size: [1]}\n  - system\n", 2, 31, "needs one value", "write chunk_size: 0"},
    {"stack:\n  - auto_growth: {order: adress}\n  - system\n", 2, 26, "not a valid choice", "write address"},
    {"stack:\n  - retry: {timeout: 100}\n  - system\n", 2, 22, "has no unit", "100ms"},
    {"stack:\n  - retry: {wait_first: yes}\n  - system\n", 2, 25, "neither true nor false", "write true"},
    {"stack:\n  - auto_growth: {chunk_size: 99TiB}\n  - system\n", 2, 31, "too large", "write a value from 0 to 16TiB"},
    {"stack:\n  - auto_growth: 20MiB\n  - system\n", 2, 18, "must be a mapping", "write - auto_growth: {chunk_size: 0}"},
    {"stack:\n  - stat: {every: 1}\n  - system\n", 2, 12, "\"stat\" has no options", "remove \"every\""},
    {"stack:\n  - system: device\n", 2, 13, "must be a mapping", "write - system: {memory: place}"},
    {"stack:\n  - stat: always\n  - system\n", 2, 11, "must be a mapping", "write - stat: {}"},
    /* Pools of auto_growth that do not fit one another. */
    {"stack:\n  - auto_growth: {split_pools: true, small_pool_size: 1MiB}\n  - system\n", 2, 32,
     "auto_growth.split_pools: split_pools and small_pool_size both divide the chunks", "write only one"},
    {"stack:\n  - auto_growth: {small_chunk_size: 2MiB}\n  - system\n", 2, 37, "there is no small pool",
     "add small_pool_size: 1MiB"},
    {"stack:\n  - auto_growth: {small_preallocate: 2MiB}\n  - system\n", 2, 38,
     "auto_growth.small_preallocate: there is no small pool", "add small_pool_size: 1MiB"},
    {"stack:\n  - auto_growth: {warm_up_steps: 1.5}\n  - system\n", 2, 34, "1.5", ""},
    /* Options that do not fit the place. */
    {"stack:\n  - auto_growth: {alignment: 300}\n  - system\n", 2, 30,
     "auto_growth.alignment: this place does not support the alignment 300", "write a power of two of at least 256"},
    {"stack:\n  - auto_growth: {name: a, alignment: 64}\n  - system\n", 2, 39,
     "a.alignment: this place does not support the alignment 64", "at least 256"},
    /* Alignments that nothing below serves. */
    {"stack:\n  - auto_growth: {alignment: 1024}\n  - system\n", 2, 30,
     "auto_growth.alignment: \"auto_growth\" needs memory aligned to 1KiB, but \"system\" below it aligns to 256",
     "put aligned between them"},
    {"stack:\n  - auto_growth: {alignment: 512}\n  - stat\n  - buffered\n  - cuda_malloc_async\n", 2, 30,
     "\"stat\" below it aligns to 256", "put aligned between them"},
    {"stack:\n  - aligned\n  - auto_growth: {alignment: 512}\n  - naive_best_fit: {min_block: 4KiB}\n  - system\n", 3, 30,
     "\"naive_best_fit\" below it aligns to 256", "put aligned between them"},
    {"stack:\n  - auto_growth: {alignment: 512}\n  - fallback: {stacks: [[aligned, system], [auto_growth, system]]}\n", 2, 30,
     "\"fallback\" below it aligns to 256", "put aligned between them"},
    {"places:\n  managed:\n    - auto_growth: {alignment: 2MiB}\n    - system\n", 3, 32, "aligned to 2MiB",
     "put aligned between them"},
    /* Wrong order is reported at the upper layer. */
    {"stack:\n  - retry\n  - auto_growth\n", 3, 5, "\"auto_growth\" has nothing below it", "- system"},
    {"stack:\n  - system\n  - retry\n  - system\n", 2, 5, "\"system\" is a source, but \"retry\" is below it", "end the stack"},
    {"stack:\n  - auto_growth\n  - retry\n  - system\n", 2, 5, "\"auto_growth\" holds a lock and is above \"retry\"",
     "put \"retry\" above \"auto_growth\""},
    {"places:\n  pinned:\n    - stream_safe\n    - auto_growth: {name: small}\n    - retry\n    - system\n", 4, 7,
     "\"small\" holds a lock", "put \"retry\" above \"small\""},
    {"stack:\n- fault\n- fault\n- fault\n- fault\n- fault\n- fault\n- fault\n- fault\n- system\n", 10, 3, "layer 9 from the top",
     "remove a layer"},
    {"stack:\n  - retry\n  - fault\n  - retry\n  - system\n", 4, 5, "repeats \"retry\" above it in the same stack", "remove one"},
    /* Files and presets that cannot be extended. */
    {"extends: .yml\n", 1, 10, "\".yml\" is neither a preset nor a file", "a file's path"},
    {"extends: .yaml\n", 1, 10, "\".yaml\" is neither a preset nor a file", "a file's path"},
    {"extends: stratta\n", 1, 10, "\"stratta\" is neither a preset nor a file", "write strata"},
    {"extends: no/such.yaml\n", 1, 10, "no/such.yaml: cannot read the file", "write a preset's name"},
    {"extends: [strata]\n", 1, 1, "needs one value", "write extends: strata"},
    /* Routers. */
    {"stack:\n  - binning\n", 2, 5, "\"binning\" needs several stacks below it, but none is given",
     "write - binning: {routes: [{up_to: 64KiB, stack: [...]}, {stack: [...]}]}"},
    {"stack:\n  - fallback: {}\n", 2, 5, "none is given", "write - fallback: {stacks: [[...], [...]]}"},
    {"stack:\n  - binning: {routes: []}\n", 2, 23, "\"routes\" must be a list of 1 to 8 routes", "write - binning:"},
    {"stack:\n  - fallback: {stacks: system}\n", 2, 24, "\"stacks\" must be a list", "write - fallback:"},
    {"stack:\n  - fallback: {stacks: [[system], []]}\n", 2, 35, "at least one layer", "write [system]"},
    {"stack:\n  - fallback: {stacks: [[system], system]}\n", 2, 35, "a stack must be a list", "write [retry,"},
    {"stack:\n  - fallback: {routes: [[system]]}\n", 2, 16, "no option \"routes\"", "write stacks"},
    {"stack:\n  - binning: {up_to_1: 1MiB}\n", 2, 15, "belongs in its route", "in routes"},
    {"stack:\n  - binning: {routes: [[system]]}\n", 2, 24, "a route must be a mapping with a stack", "write - binning:"},
    {"stack:\n  - binning: {routes: [{up_to: 1MiB}]}\n", 2, 24, "a route must be a mapping with a stack", "write"},
    {"stack:\n  - binning: {routes: [{upto: 1MiB, stack: [system]}]}\n", 2, 25, "has no \"upto\"", "write up_to"},
    {"stack:\n  - binning: {routes: [{up_to: , stack: [system]}]}\n", 2, 25, "needs one value", "write up_to: 64KiB"},
    {"stack:\n  - binning: {routes: [{up_to: 1MB, stack: [system]}, {stack: [system]}]}\n", 2, 32, "unknown unit", "write"},
    {"stack:\n  - binning: {routes: [{stack: [system]}, {stack: [system]}]}\n", 2, 32,
     "stack 1 of \"binning\" has no up_to, and only the last stack may omit it", "write up_to: 64KiB"},
    {"stack:\n  - binning: {routes: [{up_to: 1MiB, stack: [system]}, {up_to: 2MiB, stack: [system]}]}\n", 2, 64,
     "the last takes all other requests", "remove up_to of stack 2"},
    {"stack:\n  - binning: {routes: [{up_to: 1MiB, stack: [system]}]}\n", 2, 32, "\"binning\" has 1 stacks",
     "remove up_to of stack 1"},
    {"stack:\n  - binning: {routes: [{up_to: 1MiB, stack: [system]}, {up_to: 1MiB, stack: [system]}, {stack: [system]}]}\n", 2, 64,
     "binning.up_to_2: not above the previous route's", "write a larger size"},
    /* Layers in the branches of routers. */
    {"stack:\n  - fallback: {stacks: [[system], [sistem]]}\n", 2, 36, "no layer \"sistem\"", "write system"},
    {"stack:\n  - fallback: {stacks: [[auto_growth], [system]]}\n", 2, 26, "\"auto_growth\" has nothing below it", "- system"},
    {"stack:\n  - fallback: {stacks: [[system], [system]]}\n  - system\n", 3, 5,
     "\"fallback\" is a router with its own stacks, but \"system\" follows it", "put it into one"},
    {"stack:\n  - auto_growth\n  - fallback: {stacks: [[system], [retry, system]]}\n", 2, 5,
     "\"auto_growth\" holds a lock and is above \"retry\"", "put \"retry\" above \"auto_growth\""},
    {"stack:\n  - binning: {routes: [{stack: [auto_growth: {name: a}, auto_growth: {name: a}, system]}]}\n", 2, 57,
     "two layers are named \"a\"", "rename one"},
    {"stack:\n  - fallback: {stacks: [[auto_growth: {name: a}, system], [auto_growth: {name: a}, system]]}\n", 2, 60,
     "two layers are named \"a\"", "rename one"},
    /* Only a fallback has another kind of memory. */
    {"stack:\n  - binning: {routes: [{up_to: 1MiB, stack: [system: {memory: pinned}]}, {stack: [system]}]}\n", 2, 63,
     "cannot serve the place gpu", "write memory: device"},
    {"stack:\n  - fallback: {stacks: [[system], [system: {memory: host}]]}\n", 2, 53,
     "cannot serve the place gpu, where its users cannot access it", "write memory: device"},
    {"places:\n  host: [fallback: {stacks: [[system], [system: {memory: device}]]}]\n", 2, 58,
     "cannot serve the place host, where its users cannot access it", "write memory: host"},
    /* Named pools and streams. */
    {"pools: 3\n", 1, 1, "\"pools\" must be a mapping of names to stacks", "write pools: {weights: {stack: [...]}}"},
    {"version: 1\nstreams: [system]\n", 2, 1, "\"streams\" must be a mapping", "write streams: {\"copy*\": {stack: [...]}}"},
    {"pools:\n  3d: [system]\n", 2, 3, "\"3d\" is not a valid name for a pool", "starting with a letter"},
    {"pools:\n  -3: [system]\n", 2, 3, "\"-3\" is not a valid name for a pool", "or only digits"},
    {"pools:\n  \"a.b\": [system]\n", 2, 3, "\"a.b\" is not a valid name for a pool", "write up to 64 letters"},
    {"streams:\n  \"co.y*\": [system]\n", 2, 3, "\"co.y*\" is not a valid name for a pattern", "and * for any characters"},
    {"pools:\n  a: 1\n", 2, 3, "a pool must be a mapping with a stack", "write pools: {weights:"},
    {"streams:\n  a:\n", 2, 3, "a pattern of streams must be a mapping with a stack", "write streams:"},
    {"pools:\n  a: {stak: [system]}\n", 2, 7, "a pool has no key \"stak\"", "write stack"},
    {"pools:\n  a: {stack: [sistem]}\n", 2, 15, "no layer \"sistem\"", "write system"},
    {"pools:\n  a: [auto_growth]\n", 2, 7, "\"auto_growth\" has nothing below it", "end the stack with a source"},
    {"pools:\n  a: {places: {hosd: [system]}}\n", 2, 16, "no place \"hosd\"", "write host"},
    {"pools:\n  a: {places: {gpu: [system]}}\n", 2, 16, "belongs beside \"places\"", "write stack:"},
    {"pools:\n  a: {places: [system]}\n", 2, 7, "\"places\" must be a mapping", "write places: {managed:"},
    {"pools:\n  a: {places: {host: [system: {memory: pinned}]}}\n", 2, 40, "cannot serve the place host", "write memory: host"},
    {"streams:\n  a: {places: {pinned: [system]}}\n", 2, 16, "pinned memory has no owner stream", "write managed"},
    {"pools:\n  a: [system]\n  a: [system]\n", 3, 3, "\"a\" is here twice", "remove one"},
    {"stack: [auto_growth: {name: pools}, system]\n", 1, 29, "not a valid layer name", "write up to 64 letters"},
    /* A `keep` that would do nothing. */
    {"pools:\n  p: {keep: maybe, stack: [buffered, system]}\n", 2, 13, "neither true nor false", "write keep: true"},
    {"pools:\n  p: {keep: [], stack: [buffered, system]}\n", 2, 13, "true or false", "write keep: true"},
    {"pools:\n  p: {keep: true, stack: [retry, system]}\n", 2, 13, "no layer of the pool keeps chunks", "auto_growth"},
    {"pools:\n  p: {keep: true, stack: [cuda_malloc_async]}\n", 2, 13, "no layer of the pool keeps chunks", "pool: own"},
    {"streams:\n  s: {keep: true, stack: [buffered, system]}\n", 2, 7, "has no key \"keep\"", "write one of stack, places"},
    /* Errors stand where the value stands, after anchors, letters and byte order marks. */
    {"{strategy: \"\xc3\xa9\xe2\x82\xac\", stack: [system, nosuch]}\n", 1, 34, "nosuch", "write "},
    {"stack: &s\n  - &l nosuch\n", 2, 5, "nosuch", "write "},
    {"description: &d >\n  two\n\n  lines\nstack: [nosuch]\n", 5, 9, "nosuch", "write "},
    {"stack: &s [system]\nplaces:\n  host: *s\n", 3, 9, "aliases", "write the value itself"},
    {"stack: [system]\r\nplaces: {pinned: [nosuch]}\r\n", 2, 19, "nosuch", "write "},
    {"\xef\xbb\xbfstack: [nosuch]\n", 1, 9, "nosuch", "write "},
    /* A missing colon. */
    {"stack:\n  - auto_growth {chunk_size: 2MiB}\n  - system\n", 2, 5, "there is no layer \"auto_growth {chunk_size\"",
     "write a colon after the name, as in - auto_growth: {...}"},
    {"stack: [retry timeout, system]\n", 1, 9, "there is no layer \"retry timeout\"", "write a colon after the name"},
    {"stack: [nothing here, system]\n", 1, 9, "there is no layer \"nothing here\"", "write one of retry,"},
    /* Every hint offers several simulated devices. */
    {"devices: cpu\nstack: [system]\n", 1, 10, "\"cpu\" is not a device", "sim:h100x2"},
    {"devices: sim:card.yamlx17\nstack: [system]\n", 1, 10, "\"x17\" is not a number of devices", "write x2 to x16 after the file"},
    {"devices: sim:c300\nstack: [system]\n", 1, 10, "there is no profile \"c300\"", "as in sim:h100x2"},
    {"devices: gpux2\nstack: [system]\n", 1, 10, "is not a device", "sim:h100x2"},
    /* Columns count from after a byte order mark. */
    /* Columns count from after it. */
    {"\xef\xbb\xbfstak: [system]\n", 1, 1, "no key \"stak\"", "write stack"},
    {"\xef\xbb\xbf# \xc3\xa9\nstack: [system]\n%TAG !a! !\n", 3, 1, "", ""},
    {"\xef\xbb\xbfstack: [\x01]\n", 1, 9, "control characters are not allowed", "write plain text in UTF-8"},
    {"\xef\xbb\xbf", 1, 1, "the file is empty", "write a strategy"},
    /* Tabs. */
    {"version: 1\nstack:\n\t- system\n", 3, 1, "a tab", "write spaces"},
    {"stack:\n  - auto_growth:\n\t\tchunk_size: 2MiB\n  - system\n", 3, 1, "a tab", "write spaces"},
    {"stack:\n  -\tsystem\n", 2, 4, "a tab", "write spaces"},
    {"stack: [system]\nstrategy: x\n\tplaces: {}\n", 3, 1, "a tab", "write spaces"},
    {"stack: [system]\n  \tplaces: {}\n", 2, 3, "a tab", "write spaces"},
    {"\tstack: [system]\n", 1, 1, "a tab", "write spaces"},
    /* The error is the text between the brackets, and not the tab in front of it. */
    {"stack: [system,\n\t}\n", 2, 2, "did not find expected node content", "brackets"},
    /* A value is of one line. */
    {"stack:\n  - auto_growth:\n      chunk_size: \"1\\nMiB\"\n  - system\n", 3, 19, OVER_LINE, "write it on one line"},
    {"stack:\n  - auto_growth:\n      chunk_size: \"1\n\n        MiB\"\n  - system\n", 3, 19, OVER_LINE, "write it on one line"},
    {"stack:\n  - auto_growth:\n      chunk_size: \"1\n        MiB\"\n  - system\n", 3, 19, OVER_LINE, "write it on one line"},
    {"stack:\n  - auto_growth:\n      chunk_size: '1\n        MiB'\n  - system\n", 3, 19, OVER_LINE, "write it on one line"},
    {"stack:\n  - auto_growth:\n      chunk_size: 1\n        MiB\n  - system\n", 3, 19, OVER_LINE, "write it on one line"},
    {"stack:\n  - auto_growth:\n      chunk_size: \"1\\tMiB\"\n  - system\n", 3, 19, OVER_LINE, "write it on one line"},
    {"stack: [system]\ndevices: \"sim:\\nh100\"\n", 2, 10, "the value spans lines", "write it on one line"},
    {"stack:\n  - binning:\n      routes:\n        - {up_to: \"1\\nMiB\", stack: [system]}\n        - {stack: [system]}\n", 4, 19,
     "the value spans lines", "write it on one line"},
    /* Routes of nothing. */
    {"stack:\n  - binning:\n      routes:\n        - {up_to: 0, stack: [system]}\n        - {up_to: 1MiB, stack: [system]}\n   "
     "     - {stack: [system]}\n",
     4, 19, "up_to: 0: no request would match", "write a size above 0, as in up_to: 64KiB"},
    {"stack:\n  - binning: {routes: [{up_to: 0B, stack: [system]}, {stack: [system]}]}\n", 2, 32, "up_to: 0", "64KiB"},
    /* Graphs. */
    {"graph:\n", 1, 1, "\"graph\" must be a mapping with a stack", "write graph: {stack: [...]}"},
    {"graph: {}\n", 1, 1, "\"graph\" must be a mapping with a stack", "write graph: {stack: [...]}"},
    {"graph: system\n", 1, 1, "\"graph\" must be a mapping with a stack", "write graph: {stack: [...]}"},
    {"graph: 3\n", 1, 1, "\"graph\" must be a mapping with a stack", "write graph: {stack: [...]}"},
    {"graph: {stak: [system]}\n", 1, 9, "\"graph\" has no key \"stak\"", "write stack"},
    {"graph: {keep: true, stack: [auto_growth, system]}\n", 1, 9, "keeps its chunks while the graph exists", "remove keep"},
    {"graph: {stack: [sistem]}\n", 1, 17, "no layer \"sistem\"", "write system"},
    {"graph: {stack: []}\n", 1, 16, "a stack needs at least one layer", "write [system]"},
    {"graph: [auto_growth]\n", 1, 9, "\"auto_growth\" has nothing below it", "end the stack with a source"},
    {"graph: [buffered, fallback: {stacks: [{stack: [system], out_of_memory: {}}]}]\n", 1, 9,
     "is above \"out_of_memory\", which may wait", "put \"out_of_memory\" above"},
    {"graph: {places: {manged: [system]}}\n", 1, 18, "no place \"manged\"", "write managed"},
    {"graph: {places: {pinned: [buffered, system]}}\n", 1, 18, "pinned memory has no owner stream, and therefore no graph pools",
     "write managed, or remove it"},
    {"graph: {places: {host: [buffered, system]}}\n", 1, 18, "host memory has no owner stream, and therefore no graph pools",
     "write managed, or remove it"},
    {"graph: {places: {gpu: [system]}}\n", 1, 18, "belongs beside \"places\"", "write stack:"},
    {"graph: {places: [system]}\n", 1, 9, "\"places\" must be a mapping", "write places: {managed:"},
    {"graph: {places: {managed: [buffered, system: {memory: host}]}}\n", 1, 55, "cannot serve the place managed",
     "write memory: managed"},
    {"graph: {out_of_memory: {}}\n", 1, 9, "no stack is beside it", "write stack: too"},
    {"graph: {stack: [auto_growth, system], out_of_memory: {timout: 1s}}\n", 1, 55, "has no option \"timout\"", "write timeout"},
    {"stack: [auto_growth: {name: graph}, system]\n", 1, 29, "not a valid layer name", "write up to 64 letters"},
    {"grpah: [auto_growth, system]\n", 1, 1, "a strategy has no key \"grpah\"", "write graph"},
    {"graph: [auto_growth, system]\ngraph: [auto_growth, system]\n", 2, 1, "\"graph\" is here twice", "remove one"},
    {"graph: [caching: {pools_on_oom: true}, system]\n", 1, 33, "outside the stack of a named pool", "pools:"},
    /* Ways to a source without a cache, in a stack of graphs. */
    {"graph: [system]\n", 1, 8, "\"system\" " WITHOUT_A_CACHE, "write graph: {stack: [auto_growth, system]}"},
    {"graph:\n  stack: [stream_safe, limit: {bytes: 1GiB}, system: {name: below}]\n", 2, 10, "\"below\" " WITHOUT_A_CACHE,
     "write graph: {stack: [auto_growth, system]}"},
    {"graph: [binning: {routes: [{up_to: 1MiB, stack: [auto_growth, system]}, {stack: [system]}]}]\n", 1, 8,
     "\"system\" " WITHOUT_A_CACHE, "write graph:"},
    {"graph: [fallback: {stacks: [[cuda_malloc_async], [system: {memory: managed}]]}]\n", 1, 8, "\"system\" " WITHOUT_A_CACHE,
     "write graph:"},
    {"graph: {stack: [auto_growth, system], places: {managed: [system]}}\n", 1, 57, "\"system\" " WITHOUT_A_CACHE,
     "write graph: {places: {managed: [auto_growth, system]}}"},
    {"stack:\n  - binning: {routes: [{up_to: 1MiB, stack: [system]}, {up_too: 2MiB, stack: [system]}]}\n", 2, 57,
     "a route of \"binning\" has no \"up_too\"", "write up_to"},
    /* Stacks of one device. */
    {"devices: {gpux: {stack: [system]}}\n", 1, 11, "\"gpux\" is not a device", "use: gpu"},
    {"devices: {gpu:1: {stack: [system]}, gpu:01: {stack: [buffered, system]}}\n", 1, 37, "\"gpu:01\" is not a device",
     "write gpu:0 to gpu:15"},
    {"devices: {gpu:00: {stack: [system]}}\n", 1, 11, "\"gpu:00\" is not a device", "write gpu:0 to gpu:15"},
    {"devices: {gpu:16: {stack: [system]}}\n", 1, 11, "\"gpu:16\" is not a device", "write gpu:0 to gpu:15"},
    {"devices: {gpu:1: [system]}\n", 1, 11, "a device must be a mapping", "write gpu:1: {stack:"},
    {"devices: {gpu:1: {stak: [system]}}\n", 1, 19, "no key \"stak\"", "write stack"},
    {"devices: {gpu:1: {places: {pinned: [system]}}}\n", 1, 28, "a device has no own \"pinned\"", "write managed"},
    {"devices: {gpu:1: {places: [system]}}\n", 1, 19, "a mapping of places", "write places: {managed:"},
    {"devices: {use: tpu}\n", 1, 16, "is not a device", "gpu"},
    {"devices: {use: }\n", 1, 11, "needs one value", "write use: gpu"},
    {"devices: {gpu:1: {stack: [retry]}}\n", 1, 27, "\"retry\" has nothing below it", "- system"},
    {"devices: sim:h100x99\n", 1, 10, "there is no profile \"h100x99\"", "write one of h100"},
};

TEST(errors, wrong_text_is_refused_at_its_place) {
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        expect_refused(refusals[i].yaml, refusals[i].line, refusals[i].column, refusals[i].what, refusals[i].write);
}

static const char *const right[] = {
    "# mine\n%YAML 1.1\n---\nstack: [system]\n...\n# %TAG\n",
    "---\ndescription: |\n %TAG ! !a\nstrategy: \"a\n%TAG ! !a\"\nstack: [system]\n",
    "devices: gpu:15\n",
    "devices: sim:h100x16\n",
    "places:\n  host:\n    - auto_growth: {alignment: 64}\n    - system\n",
    /* A layer that waits on one way only stands below no lock; a trait counts if every way gives it. */
    "stack: [retry, fallback: {stacks: [[retry, auto_growth, system], [system]]}]\n",
    ("stack: [fallback: {stacks: [[system], [system: {memory: managed}], [binning: {routes: [{up_to: 1MiB, stack: [system: "
     "{memory: pinned}]}, {stack: [system]}]}]]}]\n"),
    "pools:\n  3: [system]\n",
    "\xef\xbb\xbf%YAML 1.1\n---\nstack: [system]\n",
    /* Behind a value, in a comment and between brackets a tab does no harm. */
    "stack: [system]\t# a\tcomment\n",
    "stack: [auto_growth: {\n\tchunk_size: 2MiB},\n\tsystem]\n",
    "description: |\n  of two\n  lines\nstack:\n  - auto_growth:\n      chunk_size: >\n        2MiB\n  - system\n",
    /* Alignments that the layers below serve. */
    "stack:\n  - auto_growth: {alignment: 1KiB}\n  - aligned\n  - system\n",
    "stack:\n  - auto_growth: {alignment: 1KiB}\n  - stat\n  - buffered\n  - aligned: {from: 1MiB}\n  - cuda_malloc_async\n",
    "stack:\n  - auto_growth: {name: a, alignment: 1KiB}\n  - auto_growth: {name: b, alignment: 1KiB}\n  - aligned\n  - system\n",
    "stack:\n  - auto_growth: {alignment: 512}\n  - bfc\n  - system\n",
    "stack:\n  - auto_growth: {alignment: 512}\n  - fallback: {stacks: [[aligned, system], [system: {memory: pinned}]]}\n",
    "places:\n  pinned:\n    - auto_growth: {alignment: 64KiB}\n    - system\n",
    "places:\n  host:\n    - auto_growth: {alignment: 4KiB}\n    - system\n",
    /* A cache or the driver's pool serves graphs. */
    "graph: [auto_growth, system]\n",
    "graph: [cuda_malloc_async]\n",
    "graph: [stream_safe, cuda_malloc_async: {pool: own}]\n",
    "graph: [auto_growth, limit: {bytes: 1GiB}, system]\n",
    "graph: [auto_growth, fallback: {stacks: [[system], [system: {memory: managed}]]}]\n",
    "graph: [binning: {routes: [{up_to: 1MiB, stack: [auto_growth, system]}, {stack: [cuda_malloc_async]}]}]\n",
    "graph: {places: {managed: [auto_growth, system]}}\n",
};

TEST(errors, right_text_is_not_refused) {
    for (size_t i = 0; i < sizeof right / sizeof *right; i++) {
        strata_strategy_t *strategy = load_text(right[i]);
        if (!strategy) FAIL_TEST("%s", right[i]);
        strata_strategy_delete(strategy);
    }
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
