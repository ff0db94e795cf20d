/* What debug builds abort at: every device call under a lock but the four that the contract lets be made there. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/cuda/every_call.h"
#include "tests/cuda/fake/fake_driver.h"
#include "tests/harness/test.h"

#ifdef STRATA_CHECK_LOCKS
static void call_under_a_lock(strata_device_call_t call) {
    strata_lock_t lock;
    every_call_t things;
    (void)close(2);
    (void)signal(SIGABRT, SIG_DFL);
    fake_reset();
    if (!every_call_prepare(&things, call)) _exit(2);
    strata_lock_init(&lock, STRATA_RANK_STACK, NULL);
    strata_lock(&lock);
    strata_status_t status = every_call_make(&things, call);
    strata_unlock(&lock);
    _exit(status == STRATA_OK ? 0 : 1);
}

static bool may_be_made_under_a_lock(strata_device_call_t call) {
    return call == STRATA_CALL_event_record || call == STRATA_CALL_event_query || call == STRATA_CALL_stream_wait ||
           call == STRATA_CALL_capture_status || call == STRATA_CALL_capture_follows;
}
#endif

TEST(cuda_locks, under_one_every_call_aborts_but_the_five_that_may_be_made) {
#ifdef STRATA_CHECK_LOCKS
    for (int call = 0; call < STRATA_DEVICE_CALLS; call++) {
        bool quick = may_be_made_under_a_lock((strata_device_call_t)call);
        pid_t child = fork();
        if (child == 0) call_under_a_lock((strata_device_call_t)call);
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        bool as_it_should = quick ? WIFEXITED(status) && WEXITSTATUS(status) == 0
                                  : WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
        if (!as_it_should)
            FAIL_TEST("%s under a lock ended with the wait status %#x", strata_device_call_name((strata_device_call_t)call),
                      (unsigned)status);
    }
#else
    TEST_SKIP("this build does not check locks");
#endif
}
