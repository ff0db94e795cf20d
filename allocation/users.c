#include "allocation/users.h"

#include "allocation/threads.h"
#include "platform/device.h"

static uint64_t thread_of(strata_stream_t stream) {
    return stream == STRATA_STREAM_PER_THREAD ? strata_threads_self() : 0;
}

/* The legacy stream has two names. */
static strata_stream_t key_of(strata_stream_t stream) {
    return stream == STRATA_STREAM_LEGACY ? NULL : stream;
}

strata_status_t strata_users_init(strata_nodes_t *users) {
    return strata_nodes_init(users, sizeof(strata_user_t), STRATA_USERS);
}

bool strata_user_is_nameable(const strata_user_t *user) {
    return user->state == STRATA_USER_NAMED && user->thread == thread_of(user->stream);
}

uint32_t strata_users_find(const strata_nodes_t *users, strata_stream_t stream) {
    for (uint32_t node = 1; node < users->used; node++) {
        const strata_user_t *user = strata_user_at(users, node);
        if (user->state == STRATA_USER_NAMED && user->stream == key_of(stream) && strata_user_is_nameable(user)) return node;
    }
    return 0;
}

bool strata_user_is_of_the_dead(const strata_user_t *user, strata_user_state_t state) {
    return user->state == state && user->thread != 0 && !strata_threads_is_alive(user->thread);
}

static void bury_threads(strata_nodes_t *users) {
    for (uint32_t node = 1; node < users->used; node++) {
        const strata_user_t *user = strata_user_at(users, node);
        bool idle = user->holds == 0 && user->busy == 0;
        if (idle && strata_user_is_of_the_dead(user, STRATA_USER_NAMED)) strata_users_end(users, node);
    }
}

uint32_t strata_users_make(strata_nodes_t *users, strata_stream_t stream) {
    uint32_t node = strata_users_find(users, stream);
    if (node) return node;
    if (stream == STRATA_STREAM_PER_THREAD) bury_threads(users);
    node = strata_nodes_take(users);
    if (node == 0) {
        strata_fail(STRATA_E_LIMIT, 0, "one source serves %d streams at a time, its most", STRATA_USERS - 1);
        return 0;
    }
    *strata_user_at(users, node) =
        (strata_user_t){.stream = key_of(stream), .thread = thread_of(stream), .state = STRATA_USER_NAMED};
    return node;
}

void strata_users_end(strata_nodes_t *users, uint32_t node) {
    strata_user_at(users, node)->state = STRATA_USER_UNUSED;
    strata_nodes_give(users, node);
}

void strata_users_let_go(strata_nodes_t *users, uint32_t node) {
    strata_user_t *user = strata_user_at(users, node);
    if (--user->holds == 0 && user->state != STRATA_USER_NAMED) strata_users_end(users, node);
}
