/* Shared memory over a Unix socket. A message is a head, then its segments; the descriptors come with the first byte. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "facade/share/share.h"
#include "platform/arguments.h"

#define MAGIC UINT64_C(0x3165726168736773) /* "sgshare1" */

typedef struct head {
    uint64_t magic, owner[2], offset, size;
    uint32_t device, count;
} head_t;

typedef struct message {
    head_t head;
    strata_segment_t segments[STRATA_SHARE_SEGMENTS];
} message_t;

/* Room for the descriptors of a message, and for those of one that has more than it may. */
typedef union descriptors {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int) * (STRATA_SHARE_SEGMENTS + 3))];
} descriptors_t;

static strata_status_t failed(const char *what) {
    return strata_fail(STRATA_E_IO, 0, "shared memory: the socket %s: %s", what, errno ? strerror(errno) : "it was closed");
}

static strata_status_t check_socket(int socket) {
    int family = 0, type = 0;
    socklen_t size = sizeof family, type_size = sizeof type;
    if (getsockopt(socket, SOL_SOCKET, SO_DOMAIN, &family, &size) == 0 && family == AF_UNIX &&
        getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &type_size) == 0 && type == SOCK_STREAM)
        return STRATA_OK;
    return strata_fail(STRATA_E_INVALID, 0, "descriptor %d is no Unix socket of streams", socket);
}

/* ---- sending ---- */

static strata_status_t send_rest(int socket, const unsigned char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return failed("takes no more");
        bytes += sent;
        size -= (size_t)sent;
    }
    return STRATA_OK;
}

static strata_status_t send_message(int socket, const message_t *message, const int *numbers, uint32_t count) {
    size_t size = sizeof message->head + count * sizeof *message->segments;
    struct iovec part = {.iov_base = (void *)(uintptr_t)message, .iov_len = size};
    descriptors_t control;
    memset(&control, 0, sizeof control);
    struct msghdr header = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int) * count);
    memcpy(CMSG_DATA(&control.header), numbers, sizeof(int) * count);
    ssize_t sent;
    do sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent <= 0) return failed("takes nothing");
    return send_rest(socket, (const unsigned char *)message + sent, size - (size_t)sent);
}

strata_status_t strata_share_send(int socket, const strata_shared_t *shared) {
    STRATA_REFUSE_NULL(shared);
    strata_status_t status = check_socket(socket);
    if (status == STRATA_OK) status = strata_shared_check(shared);
    if (status != STRATA_OK) return status;
    message_t message;
    memset(&message, 0, sizeof message);
    message.head = (head_t){.magic = MAGIC,
                            .owner = {shared->owner[0], shared->owner[1]},
                            .offset = shared->offset,
                            .size = shared->size,
                            .device = shared->device,
                            .count = shared->count};
    memcpy(message.segments, shared->segments, shared->count * sizeof *shared->segments);
    return send_message(socket, &message, shared->descriptors, shared->count);
}

/* ---- receiving ---- */

/* All descriptors that a part of a message brought: those that are wanted are kept, the others closed at once. */
static void take_descriptors(struct msghdr *header, strata_shared_t *shared, uint32_t *too_many) {
    for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control; control = CMSG_NXTHDR(header, control)) {
        if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
        size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int number;
            memcpy(&number, CMSG_DATA(control) + i * sizeof number, sizeof number);
            if (shared->count < STRATA_SHARE_SEGMENTS) {
                shared->descriptors[shared->count++] = number;
            } else {
                close(number);
                ++*too_many;
            }
        }
    }
}

static strata_status_t receive_bytes(int socket, void *into, size_t size, strata_shared_t *shared, uint32_t *too_many) {
    for (size_t got = 0; got < size;) {
        struct iovec part = {.iov_base = (unsigned char *)into + got, .iov_len = size - got};
        descriptors_t control;
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        errno = 0;
        ssize_t came = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
        if (came < 0 && errno == EINTR) continue;
        if (came <= 0) return failed("brings nothing");
        take_descriptors(&header, shared, too_many);
        if (header.msg_flags & MSG_CTRUNC) ++*too_many;
        got += (size_t)came;
    }
    return STRATA_OK;
}

/* While it comes, `count` is that of the descriptors. */
static strata_status_t receive(int socket, strata_shared_t *shared) {
    head_t head;
    uint32_t too_many = 0;
    strata_status_t status = receive_bytes(socket, &head, sizeof head, shared, &too_many);
    if (status != STRATA_OK) return status;
    if (head.magic != MAGIC || head.count == 0 || head.count > STRATA_SHARE_SEGMENTS)
        return strata_fail(STRATA_E_FORMAT, 0, "shared memory: what came is no message of strata_share_send()");
    status = receive_bytes(socket, shared->segments, head.count * sizeof *shared->segments, shared, &too_many);
    if (status != STRATA_OK) return status;
    if (too_many > 0 || shared->count != head.count)
        return strata_fail(STRATA_E_FORMAT, 0, "shared memory: the message has %u segments, and other descriptors", head.count);
    memcpy(shared->owner, head.owner, sizeof head.owner);
    shared->offset = head.offset;
    shared->size = head.size;
    shared->device = head.device;
    return strata_shared_check(shared);
}

strata_status_t strata_share_receive(int socket, strata_shared_t *shared) {
    STRATA_REFUSE_NULL(shared);
    strata_shared_t got = {0};
    struct ucred other = {0};
    socklen_t size = sizeof other;
    strata_status_t status = check_socket(socket);
    if (status != STRATA_OK) return status;
    status = receive(socket, &got);
    if (status != STRATA_OK) {
        const strata_error_t reason = *strata_last_error();
        strata_shared_close(&got);
        return strata_fail_again(&reason);
    }
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0) got.sender = (uint64_t)other.pid;
    *shared = got;
    return STRATA_OK;
}
