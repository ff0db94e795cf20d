#include "lab/tools/screen/shell.h"

#include <stdbool.h>
#include <string.h>

#include "platform/host/host_text.h"
#include "platform/text/printable.h"

static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=,+@%";

static bool is_shown(const char *word) {
    for (size_t length; *word; word += length) {
        length = strata_printable_length(word);
        if (length == 0) return false;
    }
    return true;
}

static void put_quoted(FILE *out, const char *word) {
    fputc('\'', out);
    for (; *word; word++) fputs(*word == '\'' ? "'\\''" : (char[]){*word, '\0'}, out);
    fputc('\'', out);
}

/* Every POSIX shell has printf(1) with %b; few have $'...'. */
static void put_numbers(FILE *out, const char *word) {
    fputs("\"$(printf %b '", out);
    for (; *word; word++) {
        bool safe = strchr(plain, *word) != NULL || *word == ' ';
        fprintf(out, safe ? "%c" : "\\0%03o", (unsigned char)*word);
    }
    fputs("')\"", out);
}

void strata_shell_word(FILE *out, const char *word) {
    fputc(' ', out);
    if (*word && word[strspn(word, plain)] == '\0') fputs(word, out);
    else if (is_shown(word)) put_quoted(out, word);
    else put_numbers(out, word);
}

strata_status_t strata_shell_line(const char *name, int argc, char *const *argv, char **line) {
    strata_host_text_t text;
    strata_status_t status = strata_host_text_begin(&text);
    if (status != STRATA_OK) return status;
    fprintf(text.out, "strata %s", name);
    for (int i = 0; i < argc; i++) strata_shell_word(text.out, argv[i]);
    return strata_host_text_end(&text, line);
}
