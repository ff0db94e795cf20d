/* More of what validate finds of caching: lists that lead nowhere, uses of what is not freed. */
#include "tests/caching/caching.h"

#define EXPECT_FOUND(word, value, what)                                                                                            \
    do {                                                                                                                           \
        __typeof__(word) was_ = (word);                                                                                            \
        (word) = (__typeof__(word))(value);                                                                                        \
        EXPECT_STATUS(STRATA_E_CORRUPT, strata_validate(rig.s));                                                                   \
        EXPECT_CONTAINS(strata_last_error()->text, what);                                                                          \
        (word) = was_;                                                                                                             \
        EXPECT_OK(strata_validate(rig.s));                                                                                         \
    } while (0)

TEST(caching_structure, planted_faults_of_lists_are_found) {
    rig_t rig;
    caching_open(&rig, "", 0);
    caching_t *self = caching_of(&rig);
    strata_stream_t one = rig_stream(&rig), two = rig_stream(&rig);
    strata_block_t kept = rig_allocate(&rig, one, 2 * MIB), borrowed = rig_allocate(&rig, one, 3 * MIB);
    strata_record_t *block = caching_block(self, strata_ref_slot(kept.ref));
    strata_record_t *deferred = caching_block(self, strata_ref_slot(borrowed.ref));
    EXPECT_OK(strata_record_stream(rig.s, borrowed.ref, two));
    rig_work(&rig, two, MILLISECOND, borrowed.ref);
    EXPECT_OK(strata_free(rig.s, borrowed.ref));
    EXPECT_FOUND(caching_segment_at(self, block->chunk)->bank, 0, "a segment belongs to no bank");
    EXPECT_FOUND(self->chunks.count, 0, "the list of chunks is broken");
    EXPECT_FOUND(self->chunks.first, self->chunks.nodes.used, "the list of chunks is broken");
    EXPECT_FOUND(deferred->state, STRATA_RECORD_LIVE, "");
    EXPECT_OK(strata_free(rig.s, kept.ref));
    rig_close(&rig);
}
