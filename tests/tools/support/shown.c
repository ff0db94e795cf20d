#include "tests/tools/support/shown.h"
#include "tests/paths.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/files.h"
#include "tests/harness/test.h"
#include "tests/tools/support/ran.h"

enum { LINE = 512, SHOWN = 8192 };

/* ---- lines ---- */

/* The line at *at, without its end; false after the last. */
static bool next_line(const char **at, char *line) {
    size_t length = strcspn(*at, "\n");
    if (!**at) return false;
    snprintf(line, LINE, "%.*s", (int)length, *at);
    *at += length + ((*at)[length] == '\n');
    return true;
}

static bool same_words(const char *a, const char *b) {
    static const char changing[] = "host_ns_per_op ";
    while (isspace((unsigned char)*a)) a++;
    while (isspace((unsigned char)*b)) b++;
    if (strncmp(a, changing, strlen(changing)) == 0) return strncmp(b, changing, strlen(changing)) == 0;
    for (;; a++, b++) {
        size_t skip_a = strspn(a, " "), skip_b = strspn(b, " ");
        a += skip_a;
        b += skip_b;
        if ((skip_a > 0) != (skip_b > 0) && *a && *b) return false;
        if (*a != *b) return false;
        if (!*a) return true;
    }
}

const char *missing_line(const char *shown, const char *printed) {
    static char wanted[LINE];
    char line[LINE];
    bool gap = false;
    while (next_line(&shown, wanted)) {
        if (strcmp(wanted, "...") == 0) {
            gap = true;
            continue;
        }
        bool found = false;
        while (!found && next_line(&printed, line)) {
            found = same_words(wanted, line);
            if (!found && !gap) return wanted;
        }
        if (!found) return wanted;
        gap = false;
    }
    return gap || !*printed ? NULL : "(the end)";
}

/* ---- the page ---- */

char *page_text(const char *page) {
    char path[1024];
    size_t length = 0;
    snprintf(path, sizeof path, "%s/%s", STRATA_SOURCE_DIR, page);
    char *text = read_bytes(path, &length);
    if (text) text[length] = '\0';
    else FAIL_TEST("%s cannot be read", path);
    return text;
}

/* Where the next block begins, behind its "$ "; NULL: no other. */
static const char *find_prompt(const char *at, const char *begins) {
    static const char prompt[] = "    $ ";
    while ((at = strstr(at, prompt)) != NULL) {
        at += strlen(prompt);
        if (strncmp(at, begins, strlen(begins)) == 0) return at;
    }
    return NULL;
}

bool next_shown(const char **at, const char *begins, shown_t *shown) {
    static char output[SHOWN];
    char line[LINE];
    size_t used = 0, kept = 0;
    const char *from = find_prompt(*at, begins);
    if (!from) return false;
    next_line(&from, shown->command);
    /* Empty lines belong to the output where more of it follows. */
    while (*from == '\n' || (strncmp(from, "    ", 4) == 0 && strncmp(from, "    $ ", 6) != 0)) {
        next_line(&from, line);
        used += (size_t)snprintf(output + used, SHOWN - used, "%s\n", *line ? line + 4 : "");
        if (used >= SHOWN) {
            FAIL_TEST("more output than %d bytes under $ %s", SHOWN, shown->command);
            return false;
        }
        if (*line) kept = used;
    }
    output[kept] = '\0';
    shown->output = output;
    *at = from;
    return true;
}

size_t write_shown_files(const char *text) {
    static char content[SHOWN];
    char line[LINE], name[64];
    size_t files = 0;
    for (const char *at = text; (at = strstr(at, "\n```")) != NULL;) {
        at++;
        next_line(&at, line);
        const char *end = strstr(at, "```");
        if (!end) break;
        if (sscanf(line, "```%*s %63s", name) == 1 && end - at < SHOWN) {
            snprintf(content, sizeof content, "%.*s", (int)(end - at), at);
            write_text(name, content);
            files++;
        }
        at = end + 3;
    }
    return files;
}

int expect_shown(const char *page, const shown_t *shown) {
    static char printed[65536];
    ran_t ran = run_line(shown->command);
    snprintf(printed, sizeof printed, "%s%s", ran.errors, ran.out);
    const char *missing = missing_line(shown->output, printed);
    if (missing) FAIL_TEST("%s: $ %s does not print the line\n%s\nbut\n%s", page, shown->command, missing, printed);
    return ran.exit_status;
}
