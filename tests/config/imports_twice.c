/* Strings of other allocators that say one thing in two variables: one is read, and the other is told of wherever it stands. */
#include <stdio.h>
#include <stdlib.h>

#include "config/import/import.h"
#include "tests/config/refused.h"

TEST(imports, of_two_variables_with_keys_the_same_is_read_in_either_order) {
    static const char *const texts[] = {"PYTORCH_ALLOC_CONF=max_split_size_mb:64\nPYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:32",
                                        "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:32\nPYTORCH_ALLOC_CONF=max_split_size_mb:64"};
    for (int i = 0; i < 2; i++) {
        char *told = NULL;
        size_t length;
        FILE *out = open_memstream(&told, &length);
        strata_import_t *import = NULL;
        ASSERT_OK(strata_import_new(&(strata_import_request_t){.peer = "pytorch", .text = texts[i]}, &import));
        strata_strategy_t *strategy = load_request(&(strata_config_request_t){.import = import});
        EXPECT_STREQ(value_of(strategy, "caching", "max_split_size"), "32MiB");
        strata_import_tell(import, "", out);
        fclose(out);
        EXPECT_CONTAINS(told, "PYTORCH_ALLOC_CONF is ignored: PYTORCH_CUDA_ALLOC_CONF decides\n");
        EXPECT_STREQ(strchr(told, '\n'), "\n");
        free(told);
        strata_strategy_delete(strategy);
        strata_import_delete(import);
    }
}
