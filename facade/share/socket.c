/* Sends shared memory over a Unix socket. A message is a head, then its segments. The descriptors are
 * attached to the first byte, the lease last. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "facade/share/share.h"
#include "platform/arguments.h"

#define MAGIC UINT64_C(0x3265726168736773) /* "sgshare2" */

typedef struct head {
    uint64_t magic, owner[2], offset, size;
    uint32_t device, count;
} head_t;

typedef struct message {
    head_t head;
    strata_segment_t segments[STRATA_SHARE_SEGMENTS];
} message_t;

enum { DESCRIPTORS = STRATA_SHARE_SEGMENTS + 1 }; /* per message; the system sends at most 253 at once */

/* Room for the descriptors of a message, and for a message with too many of them. */
typedef union descriptors {
    struct cmsghdr header;
    char room[CMSG_SPACE(sizeof(int) * (DESCRIPTORS + 2))];
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
    return strata_fail(STRATA_E_INVALID, 0, "descriptor %d is not a Unix stream socket", socket);
}

/* ---- sending ---- */

static strata_status_t send_rest(int socket, const unsigned char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(socket, bytes, size, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return failed("accepts no more data");
        bytes += sent;
        size -= (size_t)sent;
    }
    return STRATA_OK;
}

static strata_status_t send_message(int socket, const message_t *message, const int *numbers, uint32_t count) {
    size_t size = sizeof message->head + message->head.count * sizeof *message->segments;
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
    if (sent <= 0) return failed("accepts no data");
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
    int numbers[DESCRIPTORS];
    memcpy(numbers, shared->descriptors, shared->count * sizeof *numbers);
    numbers[shared->count] = shared->lease;
    return send_message(socket, &message, numbers, shared->count + 1);
}

/* ---- receiving ---- */

/* The descriptors received so far. */
typedef struct received {
    int numbers[DESCRIPTORS];
    uint32_t count, too_many;
} received_t;

/* Keeps the expected descriptors of one part of a message, and closes the others immediately. */
static void take_descriptors(struct msghdr *header, received_t *received) {
    for (struct cmsghdr *control = CMSG_FIRSTHDR(header); control; control = CMSG_NXTHDR(header, control)) {
        if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_RIGHTS) continue;
        size_t count = (control->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int number;
            memcpy(&number, CMSG_DATA(control) + i * sizeof number, sizeof number);
            if (received->count < DESCRIPTORS) {
                received->numbers[received->count++] = number;
            } else {
                close(number);
                received->too_many++;
            }
        }
    }
}

static strata_status_t receive_bytes(int socket, void *into, size_t size, received_t *received) {
    for (size_t got = 0; got < size;) {
        struct iovec part = {.iov_base = (unsigned char *)into + got, .iov_len = size - got};
        descriptors_t control;
        struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
        errno = 0;
        ssize_t came = recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
        if (came < 0 && errno == EINTR) continue;
        if (came <= 0) return failed("delivers no data");
        take_descriptors(&header, received);
        if (header.msg_flags & MSG_CTRUNC) received->too_many++;
        got += (size_t)came;
    }
    return STRATA_OK;
}

static strata_status_t receive(int socket, strata_shared_t *shared, received_t *received) {
    head_t head;
    strata_status_t status = receive_bytes(socket, &head, sizeof head, received);
    if (status != STRATA_OK) return status;
    if (head.magic != MAGIC || head.count == 0 || head.count > STRATA_SHARE_SEGMENTS)
        return strata_fail(STRATA_E_FORMAT, 0, "shared memory: the received data is not a message of strata_share_send()");
    status = receive_bytes(socket, shared->segments, head.count * sizeof *shared->segments, received);
    if (status != STRATA_OK) return status;
    if (received->too_many > 0 || received->count != head.count + 1)
        return strata_fail(STRATA_E_FORMAT, 0,
                           "shared memory: the message has %u segments, but a different number of "
                           "descriptors",
                           head.count);
    memcpy(shared->owner, head.owner, sizeof head.owner);
    memcpy(shared->descriptors, received->numbers, head.count * sizeof *shared->descriptors);
    shared->lease = received->numbers[head.count];
    shared->offset = head.offset;
    shared->size = head.size;
    shared->device = head.device;
    shared->count = head.count;
    return strata_shared_check(shared);
}

strata_status_t strata_share_receive(int socket, strata_shared_t *shared) {
    STRATA_REFUSE_NULL(shared);
    strata_shared_t got = {0};
    received_t received = {.count = 0};
    struct ucred other = {0};
    socklen_t size = sizeof other;
    strata_status_t status = check_socket(socket);
    if (status != STRATA_OK) return status;
    status = receive(socket, &got, &received);
    if (status != STRATA_OK) {
        for (uint32_t i = 0; i < received.count; i++) close(received.numbers[i]);
        return status;
    }
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0) got.sender = (uint64_t)other.pid;
    *shared = got;
    return STRATA_OK;
}
