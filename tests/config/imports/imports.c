/* Strings of other allocators: the tables, what they make, what is refused, and that nothing is dropped in silence. */
#include <stdio.h>
#include <stdlib.h>

#include "allocation/options/option.h"
#include "config/import/rows.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "tests/config/imports/imported.h"

/* ---- what they make ---- */

/* `values`: PLACE.LAYER.OPTION=VALUE, each terminated by '|'; without a place it is the gpu. `layers`: of the gpu, or NULL. `told`: all
 * printed lines, or after '~' parts of them, and `file`: parts of the file; each part is terminated by '|'. */
typedef struct meaning {
    const char *name, *peer, *as_of, *text, *layers, *values, *told, *file;
} meaning_t;

static const meaning_t meanings[] = {
    {"pytorch", "pytorch", NULL,
     "max_split_size_mb:128, roundup_power2_divisions:[256:1, 512:2,>:4],per_process_memory_fraction:.75,"
     "garbage_collection_threshold:0.80,large_segment_size_mb:32,max_non_split_rounding_mb:64,pinned_reserve_segment_size_mb:16",
     "caching system",
     "caching.max_split_size=128MiB|caching.roundup_power2_divisions=[256:1,512:2,>:4]|caching.memory_fraction=0.75|"
     "caching.garbage_collection_threshold=0.8|caching.large_segment=32MiB|caching.max_non_split_rounding=64MiB|"
     "pinned.auto_growth.preallocate=16MiB|",
     "", ""},
    {"pytorch_whole_variables", "pytorch", NULL,
     "export PYTORCH_ALLOC_CONF=max_split_size_mb:64\nPYTORCH_CUDA_ALLOC_CONF='max_split_size_mb:32'", NULL,
     "caching.max_split_size=32MiB|", "<pytorch>:1:27: PYTORCH_ALLOC_CONF is ignored: PYTORCH_CUDA_ALLOC_CONF decides\n", ""},
    {"pytorch_without_caching", "pytorch", NULL, "PYTORCH_NO_CUDA_MEMORY_CACHING=1", "system", "", "~", ""},
    /* If two variables have keys, the same one is read whatever their order. */
    {"new_variable_first", "pytorch", NULL, "PYTORCH_ALLOC_CONF=max_split_size_mb:64\nPYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:32",
     NULL, "caching.max_split_size=32MiB|", "<pytorch>:1:20: PYTORCH_ALLOC_CONF is ignored: PYTORCH_CUDA_ALLOC_CONF decides\n", ""},
    {"new_variable_last", "pytorch", NULL, "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:32\nPYTORCH_ALLOC_CONF=max_split_size_mb:64",
     NULL, "caching.max_split_size=32MiB|", "<pytorch>:2:20: PYTORCH_ALLOC_CONF is ignored: PYTORCH_CUDA_ALLOC_CONF decides\n", ""},
    /* The variable and the first key inside it begin at one place: the option is the key's, whose value is of one line. */
    {"a_variable_of_several_lines", "pytorch", NULL,
     "PYTORCH_CUDA_ALLOC_CONF='max_split_size_mb:32,\nmax_non_split_rounding_mb:30'", NULL, "", "~",
     "      max_split_size: 32MiB  # max_split_size_mb:32\n|"
     "      max_non_split_rounding: 30MiB  # max_non_split_rounding_mb:30\n|"},
    {"pytorch_of_before_has_the_preset_of_before", "pytorch", "1.13", "max_split_size_mb:128", NULL, "", "~",
     "\nextends: pytorch-1.13\n|"},
    {"pytorch_at_a_version", "pytorch@2.9", NULL, "", NULL, "", "~", "\nextends: pytorch\n|--as-of 2.9`|"},
    /* A key that was there until 1.13 was there in each of its patches. */
    {"the_last_version_of_a_key", "pytorch", "1.13", "roundup_bypass_threshold_mb:256", NULL, "",
     "~roundup_bypass_threshold_mb:256 has no equivalent|", ""},
    {"its_patch_0", "pytorch", "1.13.0", "roundup_bypass_threshold_mb:256", NULL, "",
     "~roundup_bypass_threshold_mb:256 has no equivalent|", ""},
    {"its_patch_1", "pytorch", "1.13.1", "roundup_bypass_threshold_mb:256", NULL, "",
     "~roundup_bypass_threshold_mb:256 has no equivalent|", ""},
    /* A fraction of the whole is none. */
    {"nothing_is_collected_under_the_whole_memory", "pytorch", NULL,
     "per_process_memory_fraction:1.0,garbage_collection_threshold:0.8", NULL, "",
     "~garbage_collection_threshold:0.8 is ignored: nothing is collected|", ""},
    {"without_equivalent", "pytorch", NULL,
     "pinned_free_catch_all:True,release_lock_on_cudamalloc:True,garbage_collection_threshold:0.6,max_split_size_mb:40,"
     "max_split_size_mb:50",
     NULL, "caching.max_split_size=50MiB|",
     "~<pytorch>:1:1: pinned_free_catch_all:True has no equivalent: a pointer that|"
     "<pytorch>:1:60: garbage_collection_threshold:0.6 is ignored: nothing is collected|"
     "<pytorch>:1:93: max_split_size_mb:40 is ignored: it is set again later|",
     "\n# <pytorch>:1:1: pinned_free_catch_all:True has no equivalent: a pointer that|"
     "\n# <pytorch>:1:28: release_lock_on_cudamalloc:True needs no setting: this is already the case|"},
    {"the_drivers_pool", "pytorch", NULL, "backend:cudaMallocAsync,max_split_size_mb:40", "retry cuda_malloc_async",
     "cuda_malloc_async.throttle=1|",
     "<pytorch>:1:25: max_split_size_mb:40 is ignored: backend:cudaMallocAsync means the preset cuda_malloc_async, which has "
     "no such option\n",
     ""},
    /* The settings of blocks go with the segments that grow. */
    {"expandable_segments", "pytorch", NULL, "max_split_size_mb:40,expandable_segments:True,garbage_collection_threshold:0.6",
     "caching_vmm vmm", "caching_vmm.max_split_size=40MiB|",
     "~garbage_collection_threshold:0.6 is ignored: expandable_segments:True has no segments that are collected|", ""},
    {"expandable_segments_of_the_driver", "pytorch", NULL, "expandable_segments:True,backend:cudaMallocAsync", NULL, "",
     "~expandable_segments:True is ignored: backend:cudaMallocAsync has no segments|", ""},
    /* Nine digits after the point count. */
    {"nine_digits", "pytorch", "2.12", "PYTORCH_ALLOC_CONF=per_process_memory_fraction:0.1234567891", "caching system",
     "caching.memory_fraction=0.123456789|", "~", ""},

    {"paddle", "paddle", NULL,
     "FLAGS_allocator_strategy=auto_growth FLAGS_auto_growth_chunk_size_in_mb=32 FLAGS_free_idle_chunk=1 "
     "FLAGS_gpu_allocator_retry_time=2000 FLAGS_gpu_memory_limit_mb=8000 FLAGS_alloc_fill_value=0 FLAGS_sync_after_alloc=true "
     "FLAGS_use_auto_growth_pinned_allocator=true",
     "retry fill stream_safe auto_growth limit system",
     "auto_growth.chunk_size=32MiB|auto_growth.free_idle_chunk=true|retry.timeout=2s|limit.bytes=8000MiB|fill.byte=0|"
     "fill.synchronise=true|pinned.auto_growth.alignment=64KiB|",
     "", ""},
    {"paddle_without_layers", "paddle", NULL, "FLAGS_gpu_allocator_retry_time=-5 FLAGS_use_stream_safe_cuda_allocator=false",
     "auto_growth system", "", "~", ""},
    {"paddle_without_a_cache", "paddle", NULL,
     "FLAGS_use_system_allocator=true FLAGS_allocator_strategy=auto_growth FLAGS_gpu_memory_limit_mb=100", "limit system", "",
     "<paddle>:1:33: FLAGS_allocator_strategy=auto_growth is ignored: FLAGS_use_system_allocator decides\n", ""},
    {"paddle_fills_as_the_strategy_does", "paddle", NULL,
     "FLAGS_init_allocated_mem=true FLAGS_sync_after_alloc=true FLAGS_use_cuda_managed_memory=true",
     "retry fill stream_safe auto_growth system", "fill.write=false|system.memory=managed|",
     "~FLAGS_init_allocated_mem=true is ignored: only the buddy allocators fill their memory\n|", ""},
    {"paddle_divided_pools", "paddle", "2025-08",
     "FLAGS_small_pool_size_in_mb=1 FLAGS_small_pool_auto_growth_chunk_size_in_mb=2 FLAGS_small_pool_pre_alloc_in_mb=4 "
     "FLAGS_large_pool_auto_growth_chunk_size_in_mb=16 FLAGS_large_pool_pre_alloc_in_mb=20 FLAGS_auto_growth_chunk_size_in_mb=10",
     NULL,
     "auto_growth.small_pool_size=1MiB|auto_growth.small_chunk_size=2MiB|auto_growth.small_preallocate=4MiB|"
     "auto_growth.chunk_size=16MiB|auto_growth.preallocate=20MiB|",
     "~FLAGS_auto_growth_chunk_size_in_mb=10 is ignored: FLAGS_small_pool_size_in_mb divides|", ""},
    {"paddle_undivided_pools", "paddle", "2026-08", "FLAGS_large_pool_pre_alloc_in_mb=20 FLAGS_auto_growth_chunk_size_in_mb=10",
     NULL, "auto_growth.chunk_size=10MiB|auto_growth.preallocate=0|",
     "~FLAGS_large_pool_pre_alloc_in_mb=20 is ignored|paddle as of 2026-08 has no equivalent: its default is|", ""},
    {"paddle_buddy", "paddle", NULL,
     "FLAGS_allocator_strategy=naive_best_fit FLAGS_fraction_of_gpu_memory_to_use=.5 FLAGS_initial_gpu_memory_in_mb=512 "
     "FLAGS_reallocate_gpu_memory_in_mb=64 FLAGS_initial_cpu_memory_in_mb=100 FLAGS_fraction_of_cuda_pinned_memory_to_use=.25 "
     "FLAGS_init_allocated_mem=true",
     NULL,
     "naive_best_fit.fraction=0.5|naive_best_fit.initial=512MiB|naive_best_fit.reallocate=64MiB|"
     "host.naive_best_fit.initial=100MiB|pinned.naive_best_fit.fraction=0.25|fill.byte=239|",
     "", ""},
    {"paddle_thread_local", "paddle", NULL, "FLAGS_fraction_of_gpu_memory_to_use=.5 FLAGS_allocator_strategy=thread_local", NULL,
     "thread_local.fraction=0.5|", "~", ""},
    /* Signs and zeros in front mean nothing. */
    {"paddle_fills_with_minus_0", "paddle", NULL, "FLAGS_alloc_fill_value=-0", "retry fill stream_safe auto_growth system",
     "fill.byte=0|", "~", ""},
    {"paddle_fills_with_minus_1", "paddle", NULL, "FLAGS_alloc_fill_value=-01", "retry stream_safe auto_growth system",
     "retry.timeout=10s|", "~", ""},
    {"paddle_retries_for_00", "paddle", NULL, "FLAGS_gpu_allocator_retry_time=00", "stream_safe auto_growth system",
     "auto_growth.chunk_size=0|", "~", ""},

    {"tensorflow", "tensorflow", NULL,
     "TF_FORCE_GPU_ALLOW_GROWTH=false XLA_PYTHON_CLIENT_MEM_FRACTION=.75 TF_ENABLE_GPU_GARBAGE_COLLECTION=0 "
     "TF_GPU_ALLOCATOR=memory_guard TF_BFC_MEMORY_DUMP=\"a\\b c\" XLA_PJRT_GPU_HOST_MEMORY_PREALLOCATE=true "
     "XLA_PJRT_GPU_HOST_MEMORY_LIMIT_GB=8 XLA_PYTHON_CLIENT_PREALLOCATE=true",
     "retry guard bfc system",
     "bfc.allow_growth=false|bfc.memory_fraction=0.75|bfc.garbage_collection=false|bfc.memory_dump=a\\b c|pinned.system.cap=8GiB|"
     "pinned.auto_growth.preallocate=8GiB|",
     "~XLA_PYTHON_CLIENT_PREALLOCATE=true is ignored: TF_FORCE_GPU_ALLOW_GROWTH decides\n|", ""},
    {"blanks_at_the_ends_of_a_text", "tensorflow", NULL, "TF_BFC_MEMORY_DUMP=\"  /tmp/a b \"", NULL, "bfc.memory_dump=/tmp/a b|",
     "~", ""},
    {"tensorflow_without_its_cache", "tensorflow", NULL,
     "TF_GPU_ALLOCATOR=cuda_malloc_async TF_DETERMINISTIC_ALLOCATOR=1 TF_FORCE_GPU_ALLOW_GROWTH=true", "retry cuda_malloc_async",
     "cuda_malloc_async.reuse_opportunistic=false|cuda_malloc_async.reuse_internal=false|",
     "~TF_FORCE_GPU_ALLOW_GROWTH=true is ignored: TF_GPU_ALLOCATOR=cuda_malloc_async means the preset|", ""},
};

/* Copies the next part, which is terminated by '|'. Returns false after the last one. */
static bool next_part(const char **parts, char *part, size_t size) {
    size_t length = strcspn(*parts, "|");
    if (**parts == '\0') return false;
    snprintf(part, size, "%.*s", (int)length, *parts);
    *parts += length + ((*parts)[length] == '|');
    return true;
}

static void expect_parts(const char *text, const char *parts) {
    char part[256];
    while (next_part(&parts, part, sizeof part)) EXPECT_CONTAINS(text, part);
}

static void expect_values(const strata_strategy_t *strategy, const char *values) {
    char path[256];
    while (next_part(&values, path, sizeof path)) {
        char *value = strchr(path, '='), *layer = path, *option = path;
        *value++ = '\0';
        option = strrchr(path, '.');
        *option++ = '\0';
        strata_place_kind_t place = STRATA_PLACE_GPU;
        char *dot = strchr(path, '.');
        if (dot) {
            *dot = '\0';
            place = strata_place_find(path);
            layer = dot + 1;
        }
        const char *found = value_in(&strategy->stacks[place], layer, option);
        if (strcmp(found, value) != 0) FAIL_TEST("%s.%s is %s, not %s", layer, option, found, value);
    }
}

TEST_EACH(imports, a_string_means, meaning_t, meanings) {
    imported_t made CLOSED_BY(delete_imported) = import_right(row->peer, row->text, row->as_of);
    ASSERT_NE(made.strategy, NULL);
    if (row->layers) EXPECT_STREQ(layers_in(made.strategy, STRATA_PLACE_GPU), row->layers);
    expect_values(made.strategy, row->values);
    if (row->told[0] == '~') expect_parts(made.told, row->told + 1);
    else EXPECT_STREQ(made.told, row->told);
    expect_parts(made.file, row->file);
    expect_round_trip(&made);
}

TEST(imports, values_begin_where_their_keys_do) {
    imported_t plain CLOSED_BY(delete_imported) = import_right("pytorch", meanings[0].text, NULL);
    EXPECT_EQ(origin_of(plain.strategy, "caching", "max_split_size")->column, 1);
    EXPECT_EQ(origin_of(plain.strategy, "caching", "roundup_power2_divisions")->column, 24);
    imported_t whole CLOSED_BY(delete_imported) = import_right("pytorch", meanings[1].text, NULL);
    EXPECT_EQ(origin_of(whole.strategy, "caching", "max_split_size")->line, 2);
    imported_t old CLOSED_BY(delete_imported) = import_right("pytorch", "max_split_size_mb:128", "1.13");
    EXPECT_CONTAINS(old.strategy->peer, "1.13");
}

/* ---- every row ---- */

static const char *sample(const import_row_t *row, const import_case_t *one) {
    bool no = one->word && strcmp(one->word, "false") == 0, truth = row->kind >= IMPORT_BOOL && row->kind <= IMPORT_BOOL_JAX;
    if (row->kind == IMPORT_BOOL_PYTORCH) return no ? "False" : "True";
    if (row->kind == IMPORT_BOOL_DIGIT) return no ? "0" : "1";
    if (row->kind == IMPORT_CONF || one->word) return one->word ? one->word : "";
    if (row->kind == IMPORT_FRACTION || row->kind == IMPORT_REAL) return "0.25";
    return truth ? "true" : row->kind == IMPORT_TEXT ? "4" : "64";
}

/* One case of one row, alone: something is done, or it is told. */
static void check_case(const import_peer_t *peer, const import_row_t *row, const import_case_t *one) {
    char text[256];
    snprintf(text, sizeof text, "%s%c%s", row->key, row->inner ? ':' : '=', sample(row, one));
    imported_t made CLOSED_BY(delete_imported) = import_right(peer->name, text, NULL);
    if (!made.strategy) return;
    const import_setting_t *setting = &made.import->settings[0];
    bool told = strstr(made.told, row->key) != NULL;
    for (size_t i = 1; i < made.import->count; i++) EXPECT_TRUE(made.import->settings[i].implied);
    if (one->verb == IMPORT_NONE || setting->skip_reason) {
        if (!told) FAIL_TEST("%s \"%s\" is dropped in silence", peer->name, text);
    } else if (told) {
        FAIL_TEST("%s \"%s\" counts and is told: %s", peer->name, text, made.told);
    } else if (one->verb == IMPORT_SET || one->verb == IMPORT_FIX) {
        EXPECT_NE(setting->target, NULL);
    }
    if (!strstr(made.file, row->key)) FAIL_TEST("%s \"%s\" does not stand in the file", peer->name, text);
    expect_round_trip(&made);
}

/* "naive_best_fit", the first word. */
static bool has_preset(const char *list) {
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(list, " "), list);
    return strata_preset_text(name) != NULL;
}

TEST(imports, every_case_of_every_row_is_done_or_told) {
    for (size_t p = 0; strata_import_peer_at(p); p++) {
        const import_peer_t *peer = strata_import_peer_at(p);
        for (const import_row_t *row = peer->rows; row->key; row++)
            for (const import_case_t *one = row->cases; one->verb != IMPORT_END; one++)
                if (has_preset(one->verb == IMPORT_PRESET ? one->what : peer->preset)) check_case(peer, row, one);
    }
}

static void expect_option(const import_row_t *row, const char *path, size_t length) {
    char word[128], *at = word;
    snprintf(word, sizeof word, "%.*s", (int)length, path);
    word[strcspn(word, "=")] = '\0';
    if (strata_place_find(word) != STRATA_PLACE_KINDS) return;
    char *dot = strrchr(word, '.');
    ASSERT_NE(dot, NULL);
    *dot = '\0';
    if (strchr(at, '.')) {
        char *place = at;
        at = strchr(at, '.') + 1;
        at[-1] = '\0';
        EXPECT_NE(strata_place_find(place), STRATA_PLACE_KINDS);
    }
    const strata_layer_type_t *type = strata_layer_find(at);
    if (!type && strcmp(at, "small") && strcmp(at, "large")) FAIL_TEST("%s: there is no layer %s", row->key, at);
    if (type && !strata_option_find(type, dot + 1)) FAIL_TEST("%s: %s has no option %s", row->key, at, dot + 1);
}

/* Whatever preset it is laid over: a misspelt path would be passed over for ever. */
TEST(imports, the_tables_name_options_that_there_are) {
    if (!strata_layer_find("bfc") || !strata_layer_find("naive_best_fit")) TEST_SKIP("no layers bfc and naive_best_fit");
    for (size_t p = 0; strata_import_peer_at(p); p++)
        for (const import_row_t *row = strata_import_peer_at(p)->rows; row->key; row++)
            for (const import_case_t *one = row->cases; one->verb != IMPORT_END; one++) {
                const char *at = one->what;
                if (one->verb != IMPORT_SET && one->verb != IMPORT_FIX && one->verb != IMPORT_PRESET) continue;
                if (one->verb == IMPORT_PRESET) {
                    EXPECT_TRUE(has_preset(at));
                    at += strcspn(at, " ");
                }
                for (at += strspn(at, " +"); *at; at += strspn(at, " +")) {
                    expect_option(row, at, strcspn(at, " "));
                    at += strcspn(at, " ");
                }
            }
}

TEST(imports, the_tables_are_well_formed) {
    uint64_t version;
    for (size_t p = 0; strata_import_peer_at(p); p++) {
        const import_peer_t *peer = strata_import_peer_at(p);
        EXPECT_TRUE(strata_import_version(peer->version, &version));
        for (const import_row_t *row = peer->rows; row->key; row++) {
            if (row->since) EXPECT_TRUE(strata_import_version(row->since, &version));
            if (row->until) EXPECT_TRUE(row->since && strata_import_version(row->until, &version));
            EXPECT_TRUE(row->kind == IMPORT_CONF || row->cases[0].verb != IMPORT_END);
            EXPECT_EQ(row->cases[IMPORT_CASES - 1].verb, IMPORT_END);
            for (const import_case_t *one = row->cases; one->verb != IMPORT_END; one++)
                EXPECT_TRUE(one->what || one->verb == IMPORT_NOTHING);
            for (const import_row_t *other = peer->rows; other != row; other++) EXPECT_NE(strcmp(other->key, row->key), 0);
        }
    }
}

/* ---- what is refused ---- */

static const struct {
    const char *peer, *text, *as_of, *what;
} wrong_strings[] = {
    {"pytorch", "max_split_sizemb:128", NULL,
     "<pytorch>:1:1: pytorch has no memory setting \"max_split_sizemb\"; write max_split_size_mb"},
    {"pytorch", "backend:native,\n expandable_segment:True", NULL,
     "<pytorch>:2:2: pytorch has no memory setting \"expandable_segment\""},
    {"pytorch", "PYTORCH_CUDA_ALLOC_CNF=x:1", NULL,
     "<pytorch>:1:1: pytorch has no memory setting \"PYTORCH_CUDA_ALLOC_CNF\"; write PYTORCH_CUDA_ALLOC_CONF"},
    {"pytorch", "PYTORCH_CUDA_ALLOC_CONF=backend:nativ", NULL, "<pytorch>:1:25: \"nativ\" is not a value of backend; write native"},
    {"pytorch", "max_split_size_mb", NULL, "<pytorch>:1:18: max_split_size_mb has no value; write max_split_size_mb:VALUE"},
    {"pytorch", "max_split_size_mb:12x", NULL, "<pytorch>:1:1: \"12x\" is not a value of max_split_size_mb; write a whole number"},
    {"pytorch", "max_split_size_mb:-1", NULL, "\"-1\" is not a value of max_split_size_mb"},
    {"pytorch", "max_split_size_mb:5", NULL,
     "<pytorch>:1:1: \"5\" is not a value of max_split_size_mb; write a number of at least 20"},
    {"pytorch", "max_split_size_mb:99999999999999999999", NULL, "<pytorch>:1:1: caching.max_split_size: "},
    {"pytorch", "max_split_size_mb:999999999999999999999", NULL, "write a smaller number"},
    {"pytorch", "roundup_power2_divisions:3", NULL, "<pytorch>:1:1: "},
    {"pytorch", "roundup_power2_divisions:[256:1", NULL, "<pytorch>:1:1: "},
    {"pytorch", "per_process_memory_fraction:1.5", NULL, "\"1.5\" is not a value of per_process_memory_fraction"},
    {"pytorch", "garbage_collection_threshold:x", NULL, "write a decimal number, as in 0.75"},
    {"pytorch", "garbage_collection_threshold:.", NULL, "write a decimal number, as in 0.75"},
    {"pytorch", "expandable_segments:Maybe", NULL, "write True or False"},
    {"pytorch", "backend:native max_split_size_mb:64", NULL, "<pytorch>:1:16: a comma must follow the value of backend"},
    {"pytorch", ":5", NULL, "<pytorch>:1:1: a key is missing"},
    {"pytorch", "max_split_size_mb:\x80", NULL, "<pytorch>:1:19: a byte is not printable ASCII"},
    {"pytorch", "expandable_segments:False", "1.13", "<pytorch>:1:1: pytorch has expandable_segments from 2.1 on, not as of 1.13"},
    {"pytorch", "expandable_segments:False", "2.0", "pytorch has expandable_segments from 2.1 on, not as of 2.0"},
    {"pytorch", "large_segment_size_mb:32", "2.9", "pytorch has large_segment_size_mb from 2.11 on, not as of 2.9"},
    {"pytorch", "roundup_bypass_threshold_mb:64", "1.12", "pytorch has roundup_bypass_threshold_mb from 1.13 on"},
    {"pytorch", "roundup_bypass_threshold_mb:64", "2.1", "pytorch had roundup_bypass_threshold_mb up to 1.13, not as of 2.1"},
    {"pytorch", "", "two", "\"two\" is not a known version of pytorch; write one of 1.9 to 1.13, 2.0 to 2.13, as in 2.9"},
    {"pytorch", "", "2.0000009", "\"2.0000009\" is not a known version of pytorch"},
    {"pyt", "", NULL, "there is no allocator \"pyt\""},
    {"pytoch", "", NULL, "there is no allocator \"pytoch\"; write pytorch"},
    {"paddle", "FLAGS_free_idle_chunk=perhaps", NULL,
     "<paddle>:1:1: \"perhaps\" is not a value of FLAGS_free_idle_chunk; write true or false"},
    {"paddle", "FLAGS_free_idle_chunk", NULL, "FLAGS_free_idle_chunk has no value; write FLAGS_free_idle_chunk=VALUE"},
    {"paddle", "FLAGS_allocator_strategy=auto_grow", NULL,
     "\"auto_grow\" is not a value of FLAGS_allocator_strategy; write auto_growth"},
    {"paddle", "FLAGS_small_pool_size_in_mb=1", "2025-01", "paddle has FLAGS_small_pool_size_in_mb from 2025-08 on"},
    {"paddle", "FLAGS_alloc_fill_value=256", NULL, "<paddle>:1:1: fill.byte: \"256\" is too large; write a value from 0 to 255"},
    {"paddle", "FLAGS_free_idle_chunks=1", NULL, "write FLAGS_free_idle_chunk"},
    {"tensorflow", "TF_GPU_ALLOCATOR='cuda_malloc", NULL, "<tensorflow>:1:1: the value of TF_GPU_ALLOCATOR has no closing '"},
    {"tensorflow", "TF_GPU_ALLOCATOR=cuda_malloc_async TF_BFC_MEMORY_DUMP='a\rstack: [system]'", NULL,
     "<tensorflow>:1:36: the value of TF_BFC_MEMORY_DUMP contains a tab or a line break; write it on one line"},
    {"pytorch", "expandable_segments_reserve:[a\nstack: [system]]", NULL,
     "<pytorch>:1:1: the value of expandable_segments_reserve contains a tab or a line break"},
    {"tensorflow", "TF_FORCE_GPU_ALLOWGROWTH=true", NULL, "write TF_FORCE_GPU_ALLOW_GROWTH"},
    {"tensorflow", "TF_BFC_MEMORY_DUMP=", NULL, "\"\" is not a value of TF_BFC_MEMORY_DUMP"},
    {"tensorflow", "TF_BFC_MEMORY_DUMP=\" \"", NULL, "<tensorflow>:1:1: bfc.memory_dump: \"\" is not a valid text; write 1 to"},
    {"pytorch", "roundup_bypass_threshold_mb:256", "2.0.1", "up to 1.13, not as of 2.0.1"},
    {"pytorch", "roundup_bypass_threshold_mb:256", "2", "up to 1.13, not as of 2"},
    {"paddle", "FLAGS_free_idle_chunk=true\nFLAGS_\x01=1", NULL, "<paddle>:2:7: a byte is not printable ASCII"},
    {"paddle", "FLAGS_use_auto_growth_pinned_allocator=perhaps", NULL,
     "<paddle>:1:1: \"perhaps\" is not a value of FLAGS_use_auto_growth_pinned_allocator; write true or false"},
    {"paddle", "FLAGS_use_auto_growth_pinned_allocator=", NULL, "\"\" is not a value of FLAGS_use_auto_growth_pinned_allocator"},
    {"paddle", "FLAGS_use_auto_growth_pined_allocator=true", NULL, "write FLAGS_use_auto_growth_pinned_allocator"},
    {"paddle", "FLAGS_fraction_of_cuda_pinned_memory_to_use=1.5", NULL, "naive_best_fit.fraction: \"1.5\" is too large"},
    {"paddle", "FLAGS_fraction_of_cuda_pinned_memory_to_use=half", NULL,
     "\"half\" is not a value of FLAGS_fraction_of_cuda_pinned_memory_to_use; write a decimal number"},
};

TEST(imports, wrong_strings_are_refused_where_they_are_wrong) {
    for (size_t i = 0; i < sizeof wrong_strings / sizeof *wrong_strings; i++)
        expect_not_imported(wrong_strings[i].peer, wrong_strings[i].text, wrong_strings[i].as_of, wrong_strings[i].what);
}

TEST(imports, strings_are_bounded) {
    static char text[STRATA_IMPORT_BYTES + 2];
    memset(text, ',', sizeof text - 1);
    expect_not_imported("pytorch", text, NULL, "more than 16384 bytes");
    text[0] = '\0';
    for (int i = 0; i < STRATA_IMPORT_SETTINGS + 1; i++) strcat(text, "backend:native,");
    expect_not_imported("pytorch", text, NULL, "more than 256 settings");
    size_t length = (size_t)sprintf(text, "roundup_power2_divisions:");
    memset(text + length, '4', STRATA_IMPORT_VALUE);
    text[length + STRATA_IMPORT_VALUE] = '\0';
    expect_not_imported("pytorch", text, NULL, "the value of roundup_power2_divisions is longer than 255 bytes");
    memset(text, 'k', STRATA_IMPORT_VALUE);
    text[STRATA_IMPORT_VALUE] = '\0';
    expect_not_imported("pytorch", text, NULL, "this key is longer than 255 bytes");
}

/* ---- the environment ---- */

TEST(imports, the_environment_is_read_when_asked_for) {
    setenv("PYTORCH_CUDA_ALLOC_CONF", "backend:native,max_split_size_mb:96", 1);
    strata_strategy_t *plain = load_request(&(strata_config_request_t){.preset = "pytorch", .environment = true});
    EXPECT_STREQ(value_of(plain, "caching", "max_split_size"), "unlimited");
    strata_strategy_t *asked = load_request(&(strata_config_request_t){.preset = "import:pytorch"});
    EXPECT_STREQ(value_of(asked, "caching", "max_split_size"), "96MiB");
    const strata_origin_t *origin = origin_of(asked, "caching", "max_split_size");
    EXPECT_STREQ(origin->file, "PYTORCH_CUDA_ALLOC_CONF");
    EXPECT_EQ(origin->column, 16);
    EXPECT_EQ(origin->source, STRATA_FROM_ENVIRONMENT);
    strata_strategy_delete(plain);
    strata_strategy_delete(asked);
    setenv("STRATA_STRATEGY", "import:pytorch@2.9", 1);
    asked = load_request(&(strata_config_request_t){.environment = true});
    unsetenv("STRATA_STRATEGY");
    EXPECT_STREQ(value_of(asked, "caching", "max_split_size"), "96MiB");
    strata_strategy_delete(asked);
    asked = load_text("extends: import:pytorch\nstrategy: mine\n");
    EXPECT_STREQ(value_of(asked, "caching", "max_split_size"), "96MiB");
    strata_strategy_delete(asked);
    setenv("PYTORCH_ALLOC_CONF", "max_split_size_mb:64", 1);
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    asked = load_request(&(strata_config_request_t){.preset = "import:pytorch@2.9"});
    EXPECT_STREQ(value_of(asked, "caching", "max_split_size"), "unlimited");
    strata_strategy_delete(asked);
    asked = load_request(&(strata_config_request_t){.preset = "import:pytorch@2.10"});
    EXPECT_STREQ(value_of(asked, "caching", "max_split_size"), "64MiB");
    strata_strategy_delete(asked);
    unsetenv("PYTORCH_ALLOC_CONF");
    setenv("PYTORCH_CUDA_ALLOC_CONF", "max_split_size:96", 1);
    strata_strategy_t *wrong = NULL;
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.preset = "import:pytorch"}, &wrong),
                "PYTORCH_CUDA_ALLOC_CONF:1:1: pytorch has no memory setting \"max_split_size\"");
    unsetenv("PYTORCH_CUDA_ALLOC_CONF");
    EXPECT_SAYS(STRATA_E_STRATEGY, strata_config_load(&(strata_config_request_t){.preset = "import:torch"}, &wrong),
                "there is no allocator \"torch\"");
}

/* ---- memory, the page ---- */

static strata_status_t make_in_need(uint64_t k) {
    strata_import_t *import = NULL;
    strata_strategy_t *strategy = NULL;
    strata_host_fail_at(k, 0);
    strata_status_t status = strata_import_new(
        &(strata_import_request_t){.peer = "paddle@2025-08", .text = "FLAGS_gpu_memory_limit_mb=64 FLAGS_alloc_fill_value=1"},
        &import);
    if (status == STRATA_OK) status = strata_config_load(&(strata_config_request_t){.import = import}, &strategy);
    strata_host_fail_at(0, 0);
    EXPECT_EQ((status == STRATA_OK), (strategy != NULL));
    strata_strategy_delete(strategy);
    strata_import_delete(import);
    return status;
}

TEST(imports, every_allocation_fails_in_turn) {
    uint64_t k = 1;
    strata_status_t status = make_in_need(k);
    while (status == STRATA_E_HOST_MEMORY && k < 1000) status = make_in_need(++k);
    EXPECT_EQ(status, STRATA_OK);
    EXPECT_GT(k, 4);
}

TEST(imports, the_page_has_every_key) {
    FILE *now = tmpfile();
    EXPECT_OK(strata_import_page(now));
    const char *page = read_back(now);
    for (size_t p = 0; strata_import_peer_at(p); p++)
        for (const import_row_t *row = strata_import_peer_at(p)->rows; row->key; row++) {
            char wanted[128];
            snprintf(wanted, sizeof wanted, "\n| `%s` | ", row->key);
            EXPECT_CONTAINS(page, wanted);
        }
}

TEST(imports, the_pages_examples_count_whole) {
    for (size_t p = 0; strata_import_peer_at(p); p++) {
        const import_peer_t *peer = strata_import_peer_at(p);
        if (!strata_preset_text(peer->preset)) continue;
        imported_t made CLOSED_BY(delete_imported) = import_right(peer->name, peer->example, NULL);
        EXPECT_STREQ(made.told, "");
        expect_round_trip(&made);
    }
}
