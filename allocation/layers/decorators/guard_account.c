#include "allocation/layers/decorators/guard_account.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "allocation/report/log.h"
#include "platform/host/host_memory.h"
#include "platform/place.h"
#include "trace/trace.h"

enum { GROUPS = 64, TOLD = 8, TAG = 42 };

/* Leaks of one tag. */
typedef struct group {
    uint64_t blocks, bytes;
    uint64_t first, address; /* of the tag's first allocation */
    char tag[TAG];
} group_t;

struct guard_account {
    guard_account_t *next;
    const strata_domain_t *domain;
    uint32_t guards;
    uint32_t group_count;
    uint64_t blocks, bytes; /* of all leaks, including those of tags beyond GROUPS */
    uint64_t unseen;
    group_t groups[GROUPS];
};

/* Guards the accounts of all places that have guards, and their contents. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static guard_account_t *accounts;

guard_account_t *strata_guard_account_acquire(const strata_domain_t *domain) {
    guard_account_t *fresh = strata_host_new(1, sizeof *fresh);
    if (!fresh) return NULL;
    *fresh = (guard_account_t){.domain = domain, .guards = 1};
    pthread_mutex_lock(&mutex);
    guard_account_t *account = accounts;
    while (account && account->domain != domain) account = account->next;
    if (account) {
        account->guards++;
    } else {
        fresh->next = accounts;
        accounts = fresh;
    }
    pthread_mutex_unlock(&mutex);
    if (account) strata_host_delete(fresh);
    return account ? account : fresh;
}

/* The mutex is held. */
static void add_leak(guard_account_t *account, const guard_leak_t *leak) {
    account->blocks++;
    account->bytes += leak->bytes;
    group_t *group = account->groups, *end = group + account->group_count;
    while (group < end && strcmp(group->tag, leak->tag) != 0) group++;
    if (group == end) {
        if (account->group_count == GROUPS) return;
        account->group_count++;
        *group = (group_t){.first = leak->number, .address = leak->address};
        snprintf(group->tag, sizeof group->tag, "%s", leak->tag);
    }
    group->blocks++;
    group->bytes += leak->bytes;
}

/* Stacks of several streams may end concurrently. */
void strata_guard_account_add_leak(guard_account_t *account, const guard_leak_t *leak) {
    pthread_mutex_lock(&mutex);
    add_leak(account, leak);
    pthread_mutex_unlock(&mutex);
}

void strata_guard_account_add_unseen(guard_account_t *account, uint64_t blocks) {
    pthread_mutex_lock(&mutex);
    account->unseen += blocks;
    pthread_mutex_unlock(&mutex);
}

/* ---- the report ---- */

static int by_bytes(const void *a, const void *b) {
    uint64_t first = ((const group_t *)a)->bytes, second = ((const group_t *)b)->bytes;
    return (first < second) - (first > second);
}

typedef struct message {
    char text[2048];
    size_t length;
} message_t;

static void append(message_t *message, const char *format, ...) STRATA_PRINTF(2, 3);
static void append(message_t *message, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(message->text + message->length, sizeof message->text - message->length, format, arguments);
    va_end(arguments);
    message->length += strlen(message->text + message->length);
}

static void report_leaks(guard_account_t *account) {
    uint64_t bytes = account->bytes, blocks = account->blocks;
    strata_place_t place = account->domain->place;
    message_t message = {.length = 0};
    qsort(account->groups, account->group_count, sizeof *account->groups, by_bytes);
    append(&message, "guard: %" PRIu64 " bytes in %" PRIu64 " block%s of %s:%u were never freed:", bytes, blocks,
           blocks == 1 ? "" : "s", strata_place_name(strata_place_kind(place)), strata_place_device(place));
    for (uint32_t i = 0; i < account->group_count && i < TOLD; i++) {
        const group_t *group = &account->groups[i];
        append(&message, "\n  %" PRIu64 " bytes in %" PRIu64 " block%s%s%s, the first at %#" PRIx64 " (allocation %" PRIu64 ")",
               group->bytes, group->blocks, group->blocks == 1 ? "" : "s", *group->tag ? " of " : " without a tag", group->tag,
               group->address, group->first);
        bytes -= group->bytes;
        blocks -= group->blocks;
    }
    if (blocks > 0) append(&message, "\n  %" PRIu64 " bytes in %" PRIu64 " blocks of other tags", bytes, blocks);
    strata_log_report(STRATA_LOG_ERROR, message.text);
}

void strata_guard_account_release(guard_account_t *account) {
    pthread_mutex_lock(&mutex);
    bool last = --account->guards == 0;
    guard_account_t **link = &accounts;
    while (last && *link != account) link = &(*link)->next;
    if (last) *link = account->next;
    pthread_mutex_unlock(&mutex);
    if (!last) return;
    if (account->blocks > 0) report_leaks(account);
    if (account->unseen > 0) {
        message_t message = {.length = 0};
        append(&message,
               "guard: %" PRIu64 " freed blocks were in memory that the host cannot read, so their red zones were not checked",
               account->unseen);
        strata_log_report(STRATA_LOG_WARNING, message.text);
    }
    strata_host_delete(account);
}
