/* Writes docs/strategy.md, the grammar of strategy files. */
#include "config/page.h"

#include "config/config.h"
#include "config/words.h"

static const char introduction[] =
    "# Strategy files\n\n"
    "<!-- Made by `strata grammar`; a test compares. Each part is in config/, in the file that reads it. -->\n\n"
    "A strategy defines which layers serve each place, in which order and with which options. A test loads every complete\n"
    "example on this page. [layers.md](layers.md) lists the layers and their options; `strata presets` lists the built-in\n"
    "strategies.\n\n"
    "```yaml\n"
    "version: 1\n"
    "strategy: training\n"
    "description: auto-growth best fit, safe across streams, retried on out-of-memory\n"
    "devices: gpu\n"
    "stack:                      # outermost first\n"
    "  - retry:        {timeout: 100ms}\n"
    "  - stream_safe:  {}\n"
    "  - auto_growth:  {chunk_size: 20MiB, free_idle_chunk: false}\n"
    "  - system:       {}\n"
    "places:\n"
    "  pinned:\n"
    "    - stream_safe\n"
    "    - auto_growth: {chunk_size: 8MiB}\n"
    "    - system\n"
    "```\n";

/* Answers a question that the grammar raises but that a layer's options solve. */
static const char about_two_kinds[] =
    "\n### Two kinds of chunks in one cache\n\n"
    "`auto_growth` can keep small requests in chunks of their own, so a small block cannot keep a large chunk in use. The\n"
    "cache stays on the fast path; with a router above it, it would not. Preallocated chunks are allocated when the facade\n"
    "is opened, for the default stream:\n\n"
    "```yaml\n"
    "stack:\n"
    "  - retry: {timeout: 100ms}\n"
    "  - stream_safe\n"
    "  - auto_growth:\n"
    "      small_pool_size: 1MiB    # rounded requests up to this, in chunks of 2 MiB\n"
    "      small_chunk_size: 2MiB\n"
    "      chunk_size: 20MiB        # all others\n"
    "      small_preallocate: 8MiB\n"
    "      preallocate: 2GiB\n"
    "  - system\n"
    "```\n\n"
    "`split_pools: true` divides requests by `chunk_size` instead. Larger chunks then serve smaller requests only as a last\n"
    "resort.\n";

strata_status_t strata_config_grammar(FILE *out) {
    fputs(introduction, out);
    strata_page_keys(out);
    strata_page_layers(out);
    fputs(about_two_kinds, out);
    strata_page_reclaim(out);
    strata_page_idle(out);
    strata_page_branches(out);
    strata_page_devices(out);
    strata_page_named(out);
    strata_page_kinds(out);
    strata_page_paths(out);
    strata_page_limits(out);
    return strata_config_written(out);
}
