/* libFuzzer's door to one target: compiled once for each, with FUZZ_TARGET=fuzz_NAME. */
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count) {
    FUZZ_TARGET(bytes, count);
    return 0;
}
