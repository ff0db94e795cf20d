/* A device profile as a file: what is refused says where; what is accepted is within its bounds, and is written and read again. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config/profile/profile.h"
#include "tests/fuzz/fuzz.h"
#include "tests/harness/owned.h"

/* What is written of a profile is the same once it was read. */
static void write_and_read(const strata_sim_profile_t *profile, strata_sim_profile_t *again) {
    char path[] = "/tmp/strata-profile-XXXXXX";
    strata_output_t *out = NULL;
    int file = mkstemp(path);
    FUZZ_EXPECT(file >= 0);
    close(file);
    FUZZ_EXPECT_OK(strata_output_open(path, &out));
    strata_profile_write(out, profile, NULL, NULL);
    FUZZ_EXPECT_OK(strata_output_finish(out));
    FUZZ_EXPECT_OK(strata_profile_load(path, STRATA_FILE_NAMED_BY_FILE, again));
    unlink(path);
}

void fuzz_profiles(const uint8_t *bytes, size_t count) {
    char *text CLOSED_BY(text_cleanup) = fuzz_text(bytes, count);
    strata_sim_profile_t profile = {.name = ""}, again, third;
    strata_status_t status = strata_profile_read("p.yaml", "p", text, strlen(text), &profile);
    if (status != STRATA_OK) {
        FUZZ_EXPECT(status == STRATA_E_STRATEGY && strncmp(strata_last_error()->text, "p.yaml:", 7) == 0);
        return;
    }
    FUZZ_EXPECT_OK(strata_sim_profile_check(&profile));
    write_and_read(&profile, &again);
    FUZZ_EXPECT(strcmp(again.name, profile.name) == 0 && again.total_bytes == profile.total_bytes);
    write_and_read(&again, &third);
    FUZZ_EXPECT(memcmp(&again.malloc, &third.malloc, sizeof again.malloc) == 0);
}
