#include "lab/torture/report/print.h"

#include <inttypes.h>
#include <string.h>

/* Prints lines of a C string, with escapes for characters that would end it. */
static void print_quoted(FILE *out, const char *text) {
    const char *end;
    for (; *text; text = end + (*end == '\n')) {
        end = text + strcspn(text, "\n");
        fputs("\n    \"", out);
        for (const char *at = text; at < end; at++) {
            if (*at == '"' || *at == '\\') fputc('\\', out);
            fputc(*at, out);
        }
        fputs(*end ? "\\n\"" : "\"", out);
    }
}

static void print_number(FILE *out, const char *field, uint64_t value) {
    if (value) fprintf(out, ", .%s = %" PRIu64, field, value);
}

static const char *kind_name(uint8_t kind) {
    static const char *const names[] = {
#define TORTURE_KIND_NAME(name, what) #name,
        STRATA_TORTURE_KIND_MAP(TORTURE_KIND_NAME)
#undef TORTURE_KIND_NAME
    };
    return names[kind];
}

static const char *mode_name(strata_torture_mode_t mode) {
    static const char *const names[] = {
#define TORTURE_MODE_NAME(name, text) #name,
        STRATA_TORTURE_MODE_MAP(TORTURE_MODE_NAME)
#undef TORTURE_MODE_NAME
    };
    return names[mode];
}

static void print_op(FILE *out, const torture_op_t *op) {
    fprintf(out, "    {.kind = STRATA_TORTURE_%s", kind_name(op->kind));
    print_number(out, "thread", op->thread);
    print_number(out, "place", op->place);
    print_number(out, "stream", op->stream);
    print_number(out, "other", op->other);
    print_number(out, "how", op->how);
    print_number(out, "by_pointer", op->by_pointer);
    print_number(out, "refused", op->refused);
    print_number(out, "count", op->count);
    if (op->count) fprintf(out, ", .blocks = {%u, %u, %u}", op->blocks[0], op->blocks[1], op->blocks[2]);
    print_number(out, "writes", op->writes);
    print_number(out, "graph", op->graph);
    print_number(out, "pool", op->pool);
    print_number(out, "flags", op->flags);
    print_number(out, "alignment", op->alignment);
    print_number(out, "us", op->us);
    print_number(out, "size", op->size);
    if (op->tag) fprintf(out, ", .tag = \"%s\"", op->tag);
    fputs("},\n", out);
}

void torture_print(FILE *out, const torture_program_t *program, const torture_page_t *page) {
    fprintf(out, "/* %s\n *\n *     cc this.c $(pkg-config --cflags --libs strata) && ./a.out */\n", page->about);
    fputs("#include <stdio.h>\n#include <strata/torture.h>\n\nstatic const char strategy[] =", out);
    print_quoted(out, page->strategy);
    fputs(";\n\nstatic const strata_torture_op_t ops[] = {\n", out);
    for (uint32_t i = 0; i < program->count; i++) print_op(out, &program->ops[i]);
    fputs("};\n\nint main(void) {\n    static char report[8192];\n", out);
    fputs("    strata_torture_program_t program = {.struct_size = sizeof program, .strategy = strategy, .ops = ops,\n", out);
    fprintf(out, "                                        .count = sizeof ops / sizeof *ops, .mode = STRATA_TORTURE_%s",
            mode_name(page->mode));
    print_number(out, "devices", program->devices);
    print_number(out, "threads", program->threads);
    print_number(out, "capacity", program->capacity);
    if (program->check_stream_ids) fputs(", .check_stream_ids = true", out);
    if (page->may_refuse) fputs(", .may_refuse = true", out);
    fputs("};\n    if (strata_torture_run(&program, report, sizeof report) == STRATA_OK) return 0;\n"
          "    puts(*report ? report : strata_last_error()->text);\n    return 1;\n}\n",
          out);
}
