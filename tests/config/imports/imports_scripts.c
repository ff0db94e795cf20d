/* Settings as launch scripts and images contain them: the meaning of each line, pairs in conflict, and refused spellings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/config/imports/imported.h"

/* The keys of the file start here, after comments that repeat the string. */
static const char *strategy_in(const char *file) {
    const char *at = strstr(file, "version: 1\n");
    return at ? at : "(no strategy)";
}

/* ---- accepted ---- */

/* `has`: parts of the strategy in order, each terminated by '|'. `told`: all of the printed lines, or after '~' a part of them. */
typedef struct line {
    const char *name, *peer, *as_of, *text, *has, *told;
} line_t;

#define FIGHT                                                                                                                      \
    "max_split_size_mb:128 conflicts with expandable_segments:True: a free block of max_split_size or more serves only "           \
    "requests of nearly "                                                                                                          \
    "its size, so the segment grows instead (pytorch/pytorch#193400); leave one of the two out\n"

static const line_t lines[] = {
    /* The rows of import-strings.txt. */
    {"alphafold", "tensorflow", NULL, "TF_FORCE_UNIFIED_MEMORY=1 XLA_PYTHON_CLIENT_MEM_FRACTION=4.0",
     "memory_fraction: 4 |allow_growth: false |memory: managed |", ""},
    {"alphafold3", "tensorflow", NULL,
     "XLA_PYTHON_CLIENT_PREALLOCATE=false TF_FORCE_UNIFIED_MEMORY=true XLA_CLIENT_MEM_FRACTION=3.2",
     "memory_fraction: 3.2 |allow_growth: true |memory: managed |", ""},
    {"rocm", "pytorch", NULL, "PYTORCH_HIP_ALLOC_CONF=backend:native,expandable_segments:True", "extends: pytorch-expandable\n|",
     ""},
    {"fighting", "pytorch", NULL, "expandable_segments:True,max_split_size_mb:128", "max_split_size: 128MiB |",
     "<pytorch>:1:26: " FIGHT},

    {"fighting_in_2_10", "pytorch", "2.10", "max_split_size_mb:128,expandable_segments:True", "max_split_size: 128MiB |",
     "<pytorch>:1:1: " FIGHT},
    {"not_fighting_in_2_9", "pytorch", "2.9", "expandable_segments:True,max_split_size_mb:128,max_non_split_rounding_mb:64",
     "max_split_size: unlimited |",
     "<pytorch>:1:26: max_split_size_mb:128 is ignored: expandable_segments:True splits every block up to 2.9\n"
     "<pytorch>:1:48: max_non_split_rounding_mb:64 is ignored: expandable_segments:True splits every block up to 2.9\n"},

    /* Variables in the syntax of shells, images and job scripts. */
    {"export", "pytorch", NULL, "export PYTORCH_HIP_ALLOC_CONF='expandable_segments:True,max_split_size_mb:128'",
     "extends: pytorch-expandable\n|max_split_size: 128MiB |", "~conflicts with expandable_segments:True"},
    {"exports", "tensorflow", NULL,
     "export TF_FORCE_UNIFIED_MEMORY=\"1\"\nexport XLA_PYTHON_CLIENT_MEM_FRACTION=\"2.0\"  # two devices\n",
     "memory_fraction: 2 |memory: managed |", ""},
    {"env_several", "paddle", NULL,
     "ENV FLAGS_free_idle_chunk=1 \\\n    FLAGS_gpu_memory_limit_mb=8000 \\\n    FLAGS_gpu_allocator_retry_time=0\n",
     "free_idle_chunk: true |bytes: 8000MiB |", ""},
    {"env_blank", "pytorch", NULL, "ENV PYTORCH_CUDA_ALLOC_CONF max_split_size_mb:64\nENV PYTORCH_NO_CUDA_MEMORY_CACHING 0\n",
     "max_split_size: 64MiB |", ""},
    {"setenv", "paddle", NULL, "setenv FLAGS_free_idle_chunk true\nsetenv FLAGS_gpu_memory_limit_mb 64",
     "free_idle_chunk: true |bytes: 64MiB |", ""},
    {"env_command", "paddle", NULL, "env FLAGS_free_idle_chunk=1 python train.py --batch=4", "free_idle_chunk: true |", ""},
    {"semicolons", "paddle", NULL, "FLAGS_free_idle_chunk=1;FLAGS_gpu_memory_limit_mb=64;", "free_idle_chunk: true |bytes: 64MiB |",
     ""},
    {"ampersands", "paddle", NULL, "export FLAGS_free_idle_chunk=1 && export FLAGS_gpu_memory_limit_mb=64 && python train.py",
     "free_idle_chunk: true |bytes: 64MiB |", ""},
    {"docker_run", "tensorflow", NULL,
     "-e \"XLA_PYTHON_CLIENT_PREALLOCATE=false\" -e TF_FORCE_UNIFIED_MEMORY=true -e 'XLA_CLIENT_MEM_FRACTION=3.2'",
     "memory_fraction: 3.2 |allow_growth: true |memory: managed |", ""},
    {"batch_file", "paddle", NULL, "set FLAGS_fraction_of_gpu_memory_to_use=0.5\r\nset FLAGS_allocator_strategy=naive_best_fit\r\n",
     "extends: naive_best_fit\n|fraction: 0.5 |", ""},
    {"comment", "paddle", NULL, "# FLAGS_free_idle_chunk=0\nFLAGS_free_idle_chunk=1 # as before\n", "free_idle_chunk: true |", ""},
    {"command_with_arguments", "tensorflow", NULL,
     "XLA_CLIENT_MEM_FRACTION=0.1 python run.py --TF_X=1 \\\n  --seed=2\nXLA_PYTHON_CLIENT_PREALLOCATE=false",
     "memory_fraction: 0.1 |allow_growth: true |", ""},
    {"others_are_noted", "tensorflow", NULL, "CUDA_VISIBLE_DEVICES=0, XLA_CLIENT_MEM_FRACTION=0.5 TF_CPP_MIN_LOG_LEVEL=2",
     "memory_fraction: 0.5 |",
     "<tensorflow>:1:1: CUDA_VISIBLE_DEVICES=0, is ignored: it is not a known memory setting of tensorflow\n"
     "<tensorflow>:1:53: TF_CPP_MIN_LOG_LEVEL=2 is ignored: it is not a known memory setting of tensorflow\n"},

    /* PyTorch's three variables: CUDA first, then HIP, then the new name, which takes effect from 2.10 on. */
    {"all_three", "pytorch", NULL,
     "PYTORCH_ALLOC_CONF=max_split_size_mb:64 PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:48 "
     "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:32",
     "max_split_size: 32MiB |",
     "<pytorch>:1:20: PYTORCH_ALLOC_CONF is ignored: PYTORCH_CUDA_ALLOC_CONF decides\n"
     "<pytorch>:1:64: PYTORCH_HIP_ALLOC_CONF is ignored: PYTORCH_CUDA_ALLOC_CONF decides\n"},
    {"hip_before_new", "pytorch", "2.10", "PYTORCH_ALLOC_CONF=max_split_size_mb:64 PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:48",
     "max_split_size: 48MiB |", "<pytorch>:1:20: PYTORCH_ALLOC_CONF is ignored: PYTORCH_HIP_ALLOC_CONF decides\n"},
    {"new_from_2_10", "pytorch", "2.10", "PYTORCH_ALLOC_CONF=max_split_size_mb:64", "max_split_size: 64MiB |", ""},
    {"new_before_2_10", "pytorch", "2.9", "PYTORCH_ALLOC_CONF=max_split_size_mb:64", "extends: pytorch\n|",
     "<pytorch>:1:20: PYTORCH_ALLOC_CONF is ignored: this version does not read it\n"},
    {"hip_as_of_2_9", "pytorch", "2.9", "PYTORCH_ALLOC_CONF=max_split_size_mb:64 PYTORCH_HIP_ALLOC_CONF=max_split_size_mb:48",
     "max_split_size: 48MiB |", "<pytorch>:1:20: PYTORCH_ALLOC_CONF is ignored: this version does not read it\n"},
    {"hip_words", "pytorch", NULL, "backend:hipMallocAsync,release_lock_on_hipmalloc:True,pinned_use_hip_host_register:False",
     "extends: cuda_malloc_async\n|", ""},
    {"a_last_comma", "pytorch", NULL, "max_split_size_mb:64 , expandable_segments : False ,", "max_split_size: 64MiB |", ""},
    {"no_cache_of_before", "pytorch", "2.6", "PYTORCH_NO_CUDA_MEMORY_CACHING=0", "extends: system\n|", ""},
    {"no_cache_since", "pytorch", "2.7", "PYTORCH_NO_CUDA_MEMORY_CACHING=0", "extends: pytorch\n|", ""},
    {"no_cache_on_hip", "pytorch", NULL, "PYTORCH_NO_HIP_MEMORY_CACHING=1", "extends: system\n|", ""},

    /* The defaults of JAX: three quarters of the device, preallocated. */
    {"jax_default", "tensorflow", NULL, "XLA_PYTHON_CLIENT_PREALLOCATE=false", "memory_fraction: 0.75 |allow_growth: true |", ""},
    {"jax_default_at_once", "tensorflow", NULL, "XLA_PYTHON_CLIENT_ALLOCATOR=BFC", "memory_fraction: 0.75 |allow_growth: false |",
     ""},
    {"jax_own_fraction", "tensorflow", NULL, "XLA_PYTHON_CLIENT_MEM_FRACTION=.10", "memory_fraction: 0.1 |allow_growth: false |",
     ""},
    {"jax_other_words_are_true", "tensorflow", NULL, "XLA_PYTHON_CLIENT_PREALLOCATE=FALSE", "allow_growth: false |", ""},
    {"jax_python_word", "tensorflow", NULL, "XLA_PYTHON_CLIENT_PREALLOCATE=False", "allow_growth: true |", ""},
    {"tensorflow_has_no_such_default", "tensorflow", NULL, "TF_ENABLE_GPU_GARBAGE_COLLECTION=False", "garbage_collection: false |",
     ""},
    {"unified_below_one", "tensorflow", NULL, "TF_FORCE_UNIFIED_MEMORY=1 XLA_PYTHON_CLIENT_MEM_FRACTION=0.5",
     "memory_fraction: 1 |memory: managed |",
     "~XLA_PYTHON_CLIENT_MEM_FRACTION=0.5 counts as 1: TF_FORCE_UNIFIED_MEMORY=1 raises a fraction below 1 to 1"},
    {"unified_exactly_one", "tensorflow", NULL, "TF_FORCE_UNIFIED_MEMORY=1 XLA_PYTHON_CLIENT_MEM_FRACTION=1.0",
     "memory_fraction: 1 |memory: managed |", ""},
    {"unified_default", "tensorflow", NULL, "TF_FORCE_UNIFIED_MEMORY=1 XLA_PYTHON_CLIENT_PREALLOCATE=false",
     "memory_fraction: 1 |allow_growth: true |memory: managed |", ""},
    {"above_one_alone", "tensorflow", NULL, "XLA_PYTHON_CLIENT_MEM_FRACTION=4.0", "memory_fraction: 4 |",
     "~XLA_PYTHON_CLIENT_MEM_FRACTION=4.0 is above 1 without TF_FORCE_UNIFIED_MEMORY=1"},
    {"above_one_not_unified", "tensorflow", NULL, "TF_FORCE_UNIFIED_MEMORY=0 XLA_PYTHON_CLIENT_MEM_FRACTION=1.1",
     "memory_fraction: 1.1 |", "~is above 1 without TF_FORCE_UNIFIED_MEMORY=1"},
    {"colabfold", "tensorflow", NULL,
     "export TF_FORCE_UNIFIED_MEMORY=\"1\"\nexport XLA_PYTHON_CLIENT_MEM_FRACTION=\"4.0\"\nexport "
     "XLA_PYTHON_CLIENT_ALLOCATOR=\"platform\"\n"
     "export TF_FORCE_GPU_ALLOW_GROWTH=\"true\"\n",
     "extends: system\n|", "~TF_FORCE_UNIFIED_MEMORY=1 is ignored: XLA_PYTHON_CLIENT_ALLOCATOR=platform allocates device memory"},
    {"platform_alone", "tensorflow", NULL, "XLA_PYTHON_CLIENT_ALLOCATOR=platform", "extends: system\n|", ""},
    {"cuda_async_alone", "tensorflow", NULL, "XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async", "extends: cuda_malloc_async\n|", ""},

    /* Paddle's settings for the deletion of tensors do not affect the allocator. */
    {"eager_deletion", "paddle", NULL,
     "export FLAGS_fast_eager_deletion_mode=1\nexport FLAGS_eager_delete_tensor_gb=0.0\nexport "
     "FLAGS_memory_fraction_of_eager_deletion=1\n"
     "export FLAGS_free_idle_chunk=True\n",
     "free_idle_chunk: true |", ""},
    {"eager_deletion_off", "paddle", NULL, "FLAGS_eager_delete_tensor_gb=-1.0;FLAGS_fast_eager_deletion_mode=False",
     "extends: paddle\n|", ""},
    {"other_flags", "paddle", NULL, "FLAGS_sync_nccl_allreduce=1 FLAGS_free_idle_chunk=0", "free_idle_chunk: false |",
     "~FLAGS_sync_nccl_allreduce=1 is ignored: it is not a known memory setting of paddle"},

    /* Pairs in which one setting has no effect. */
    {"collection_without_segments", "pytorch", NULL,
     "backend:cudaMallocAsync,garbage_collection_threshold:0.6,per_process_memory_fraction:0.9", "extends: cuda_malloc_async\n|",
     "~garbage_collection_threshold:0.6 is ignored: backend:cudaMallocAsync means the preset cuda_malloc_async, which has no "
     "such option\n"},
    {"expanding_without_segments", "pytorch", NULL, "expandable_segments:True,backend:cudaMallocAsync",
     "extends: cuda_malloc_async\n|", "~expandable_segments:True is ignored: backend:cudaMallocAsync has no segments"},
    {"collection_of_growing_segments", "pytorch", NULL,
     "expandable_segments:True,garbage_collection_threshold:0.6,per_process_memory_fraction:0.9", "extends: pytorch-expandable\n|",
     "~garbage_collection_threshold:0.6 is ignored: expandable_segments:True has no segments that are collected"},
    {"no_cache_no_options", "pytorch", NULL, "PYTORCH_NO_CUDA_MEMORY_CACHING=1 PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:32",
     "extends: system\n|",
     "~max_split_size_mb:32 is ignored: PYTORCH_NO_CUDA_MEMORY_CACHING=1 means the preset system, which has no such option"},
    {"split_not_expandable", "pytorch", NULL, "expandable_segments:False,max_split_size_mb:128", "max_split_size: 128MiB |", ""},
    {"platform_with_fraction", "tensorflow", NULL, "XLA_PYTHON_CLIENT_ALLOCATOR=platform XLA_CLIENT_MEM_FRACTION=.5",
     "extends: system\n|",
     "~XLA_CLIENT_MEM_FRACTION=.5 is ignored: XLA_PYTHON_CLIENT_ALLOCATOR=platform means the preset system, which has no such "
     "option"},
};

/* Returns true if `text` contains `part`; a blank at the end of `part` matches the end of a value. */
static bool has_part(const char *text, const char *part) {
    size_t length = strlen(part);
    bool value = length > 0 && part[length - 1] == ' ';
    for (const char *at = text; *at; at++)
        if (strncmp(at, part, length - value) == 0 && (!value || strchr(" \n", at[length - 1]))) return true;
    return false;
}

static void expect_parts(const char *text, const char *parts) {
    char part[128];
    for (; *parts; parts += strcspn(parts, "|") + 1) {
        snprintf(part, sizeof part, "%.*s", (int)strcspn(parts, "|"), parts);
        if (!has_part(text, part)) FAIL_TEST("\"%s\" is not in %s", part, text);
    }
}

TEST_EACH(imports_scripts, a_line_means, line_t, lines) {
    imported_t made CLOSED_BY(delete_imported) = import_right(row->peer, row->text, row->as_of);
    ASSERT_NE(made.strategy, NULL);
    expect_parts(strategy_in(made.file), row->has);
    if (row->told[0] == '~') EXPECT_CONTAINS(made.told, row->told + 1);
    else EXPECT_STREQ(made.told, row->told);
}

/* ---- refused by the framework ---- */

typedef struct refused {
    const char *name, *peer, *as_of, *text, *what;
} refused_t;

static const refused_t refused[] = {
    {"true", "pytorch", NULL, "expandable_segments:true",
     "<pytorch>:1:1: \"true\" is not a value of expandable_segments; write True or False: PyTorch refuses every other spelling"},
    {"one", "pytorch", NULL, "expandable_segments:1", "\"1\" is not a value of expandable_segments; write True or False"},
    {"capitals", "pytorch", NULL, "PYTORCH_HIP_ALLOC_CONF=expandable_segments:TRUE",
     "\"TRUE\" is not a value of expandable_segments"},
    {"threshold_0", "pytorch", NULL, "garbage_collection_threshold:0",
     "\"0\" is not a value of garbage_collection_threshold; write a number above 0 and below 1: PyTorch refuses others"},
    {"threshold_1", "pytorch", NULL, "garbage_collection_threshold:1.0", "write a number above 0 and below 1"},
    {"fraction_above_1", "pytorch", NULL, "per_process_memory_fraction:1.01", "write a number from 0 to 1: PyTorch refuses others"},
    {"segment_of_10", "pytorch", NULL, "large_segment_size_mb:10", "write a number above 10: PyTorch refuses others"},
    {"split_of_19", "pytorch", NULL, "max_split_size_mb:19", "write a number of at least 20: PyTorch refuses others"},
    {"rounding_of_19", "pytorch", NULL, "max_non_split_rounding_mb:19", "write a number of at least 20: PyTorch refuses others"},
    {"split_below_segment", "pytorch", NULL, "large_segment_size_mb:32,max_split_size_mb:31",
     "<pytorch>:1:26: PyTorch refuses max_split_size_mb:31 after large_segment_size_mb:32; write at least 32"},
    {"rounding_below_segment", "pytorch", "2.11", "large_segment_size_mb:32,max_non_split_rounding_mb:31",
     "PyTorch refuses max_non_split_rounding_mb:31 after large_segment_size_mb:32"},
    {"threads_0", "pytorch", NULL, "pinned_num_register_threads:0", "write a power of two from 1 to 128: PyTorch refuses others"},
    {"threads_3", "pytorch", NULL, "pinned_num_register_threads:3", "write a power of two from 1 to 128"},
    {"threads_256", "pytorch", NULL, "pinned_num_register_threads:256", "write a power of two from 1 to 128"},
    {"pinned_segment_0", "pytorch", NULL, "pinned_reserve_segment_size_mb:0",
     "write a number of at least 1: PyTorch refuses others"},
    {"divisions_0", "pytorch", NULL, "roundup_power2_divisions:0", "write a power of two, or a list as in [256:1,512:2,>:4]"},
    {"divisions_3", "pytorch", NULL, "roundup_power2_divisions:3", "write a power of two, or a list"},
    {"divisions_as_list", "pytorch", "1.13", "roundup_power2_divisions:[256:1]",
     "pytorch reads a list of roundup_power2_divisions from 2.0 on, not as of 1.13"},
    {"first_comma", "pytorch", NULL, ",max_split_size_mb:64", "<pytorch>:1:1: no key before the comma, which PyTorch refuses"},
    {"two_commas", "pytorch", "2.0", "backend:native,,max_split_size_mb:64", "<pytorch>:1:16: no key before the comma"},
    {"two_last_commas", "pytorch", NULL, "backend:native,,", "<pytorch>:1:16: no key before the comma"},
    {"semicolon", "pytorch", NULL, "PYTORCH_CUDA_ALLOC_CONF='backend:native;max_split_size_mb:64'", "\"native;max_split_size_mb"},
    {"no_cache_word", "pytorch", "2.7", "PYTORCH_NO_CUDA_MEMORY_CACHING=true",
     "\"true\" is not a value of PYTORCH_NO_CUDA_MEMORY_CACHING; write 1 or 0: PyTorch ignores every other spelling since 2.7"},
    {"half_a_name", "pytorch", NULL, "CUDA_ALLOC_CONF=backend:native", "pytorch has no memory setting \"CUDA_ALLOC_CONF\""},
    {"new_key", "pytorch", "2.0", "PYTORCH_HIP_ALLOC_CONF=expandable_segments:False",
     "pytorch has expandable_segments from 2.1 on"},
    {"growth_1", "tensorflow", NULL, "TF_FORCE_GPU_ALLOW_GROWTH=1",
     "\"1\" is not a value of TF_FORCE_GPU_ALLOW_GROWTH; write true or false: TensorFlow ignores every other spelling"},
    {"growth_True", "tensorflow", NULL, "export TF_FORCE_GPU_ALLOW_GROWTH=True", "write true or false: TensorFlow ignores"},
    {"unified_yes", "tensorflow", NULL, "TF_FORCE_UNIFIED_MEMORY=yes",
     "write true, false, 1 or 0: TensorFlow ignores every other spelling"},
    {"two_fractions", "tensorflow", NULL, "XLA_PYTHON_CLIENT_MEM_FRACTION=.9 XLA_CLIENT_MEM_FRACTION=.8",
     "<tensorflow>:1:1: JAX refuses XLA_PYTHON_CLIENT_MEM_FRACTION beside XLA_CLIENT_MEM_FRACTION; leave the older one out"},
    {"two_equal_fractions", "tensorflow", NULL, "XLA_CLIENT_MEM_FRACTION=.8 XLA_PYTHON_CLIENT_MEM_FRACTION=.8",
     "<tensorflow>:1:28: JAX refuses XLA_PYTHON_CLIENT_MEM_FRACTION beside"},
    {"no_such_allocator", "tensorflow", NULL, "XLA_PYTHON_CLIENT_ALLOCATOR=cudaasync", "write cuda_async"},
    {"negative_fraction", "tensorflow", NULL, "XLA_CLIENT_MEM_FRACTION=-0.5", "write a decimal number"},
    {"expansion", "tensorflow", NULL, "XLA_CLIENT_MEM_FRACTION=${FRACTION:-0.9}", "write a decimal number"},
    {"fraction_of_101", "tensorflow", NULL, "TF_FORCE_UNIFIED_MEMORY=1 XLA_CLIENT_MEM_FRACTION=100.1", "\"100.1\" is too large"},
    {"no_value", "paddle", NULL, "ENV FLAGS_free_idle_chunk\n",
     "FLAGS_free_idle_chunk has no value; write FLAGS_free_idle_chunk=VALUE"},
    {"nothing_known", "paddle", NULL, "python train.py", "paddle has no memory setting \"python\""},
    {"only_others", "tensorflow", NULL, "CUDA_VISIBLE_DEVICES=0", "tensorflow has no memory setting \"CUDA_VISIBLE_DEVICES\""},
    {"after_a_quote", "tensorflow", NULL, "XLA_CLIENT_MEM_FRACTION=\"0\".5",
     "a space must follow the value of XLA_CLIENT_MEM_FRACTION"},
    {"open_quote", "tensorflow", NULL, "-e \"XLA_CLIENT_MEM_FRACTION=0.5", "has no closing \""},
};

TEST_EACH(imports_scripts, it_is_refused, refused_t, refused) { expect_not_imported(row->peer, row->text, row->as_of, row->what); }

/* Values exactly at a bound, and pairs of keys in the order in which PyTorch accepts them, are not refused. */
static const line_t allowed[] = {
    {"split_of_20", "pytorch", NULL, "max_split_size_mb:20", "max_split_size: 20MiB |", ""},
    {"segment_of_11", "pytorch", NULL, "large_segment_size_mb:11", "large_segment: 11MiB |", ""},
    {"split_of_the_segment", "pytorch", NULL, "large_segment_size_mb:32,max_split_size_mb:32", "max_split_size: 32MiB |", ""},
    {"split_before_the_segment", "pytorch", NULL, "max_split_size_mb:31,large_segment_size_mb:32", "max_split_size: 31MiB |", ""},
    {"fraction_of_0", "pytorch", NULL, "per_process_memory_fraction:0", "memory_fraction: 0 |", ""},
    {"fraction_of_1", "pytorch", NULL, "per_process_memory_fraction:1", "memory_fraction: 1 |", ""},
    {"threshold_below_1", "pytorch", NULL, "garbage_collection_threshold:0.999999,per_process_memory_fraction:0.5",
     "garbage_collection_threshold: 0.999999 |", ""},
    {"pinned_segment_1", "pytorch", NULL, "pinned_reserve_segment_size_mb:1", "preallocate: 1MiB |", ""},
    {"threads_128", "pytorch", NULL, "pinned_num_register_threads:128", "extends: pytorch\n|",
     "~pinned_num_register_threads:128 has no equivalent"},
    {"divisions_1", "pytorch", NULL, "roundup_power2_divisions:1", "roundup_power2_divisions: \"1\" |", ""},
    {"waits_without_a_value", "paddle", NULL, "FLAGS_alloc_fill_value=-1 FLAGS_sync_after_alloc=1",
     "fill: |synchronise: true |write: false |", ""},
    {"auto_growth_fills_nothing", "paddle", NULL, "FLAGS_allocator_strategy=auto_growth FLAGS_init_allocated_mem=1",
     "extends: paddle\n|", "~FLAGS_init_allocated_mem=1 is ignored: only the buddy allocators fill their memory"},
    {"number_with_plus", "pytorch", NULL, "max_split_size_mb:+64", "max_split_size: 64MiB |", ""},
    {"list_of_divisions_at_2.0", "pytorch", "2.0", "roundup_power2_divisions:[256:1,>:4]",
     "extends: pytorch\n|roundup_power2_divisions: \"[256:1,>:4]\" |", ""},
    {"image_with_blanks_at_the_end", "tensorflow", NULL, "ENV TF_GPU_ALLOCATOR cuda_malloc \t \n", "extends: system\n|", ""},
    {"beginning_of_a_name", "tensorflow", NULL, "TF=1 TF_GPU_ALLOCATOR=cuda_malloc", "extends: system\n|",
     "~TF=1 is ignored: it is not a known memory setting of tensorflow"},
    {"beginning_of_a_command", "tensorflow", NULL, "se TF_FORCE_GPU_ALLOW_GROWTH=perhaps\nTF_GPU_ALLOCATOR=cuda_malloc",
     "extends: system\n|", ""},
    {"two_commas_of_before", "pytorch", "1.13", ",max_split_size_mb:64,,garbage_collection_threshold:0.5",
     "max_split_size: 64MiB |", "~garbage_collection_threshold:0.5 is ignored"},
    {"fraction_of_100", "tensorflow", NULL, "TF_FORCE_UNIFIED_MEMORY=1 XLA_CLIENT_MEM_FRACTION=100", "memory_fraction: 100 |", ""},
};

TEST_EACH(imports_scripts, it_is_allowed, line_t, allowed) { imports_scripts_a_line_means(row); }
