/* The calls that end a file fail when a test says so (they are wrapped by the linker): some file systems tell only there that
 * they are full. */
#ifndef STRATA_TESTS_SECURITY_ENDING_H
#define STRATA_TESTS_SECURITY_ENDING_H

typedef enum ending { ENDING_FSYNC, ENDING_CLOSE, ENDING_RENAME, ENDINGS } ending_t;

/* From here on the call fails for this reason, until it is 0 again. What is closed is closed all the same, as the system does. */
void ending_fails(ending_t ending, int why);

#endif
