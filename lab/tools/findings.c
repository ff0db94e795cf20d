#include "lab/tools/findings.h"

#include <stdlib.h>
#include <unistd.h>

#include "allocation/options/option.h"
#include "config/config.h"
#include "lab/replay/compare/same.h"
#include "lab/tools/screen/shell.h"
#include "platform/host/file.h"
#include "platform/host/host_memory.h"
#include "platform/host/host_text.h"

/* ---- the command to run next ------------------------------------------------------------------------------------------- */

static void put_option(FILE *out, const char *name, const char *value) {
    strata_shell_word(out, name);
    if (value) strata_shell_word(out, value);
}

/* Writes all options that the replay depends on. Values from STRATA_SET are among the candidate's own, so the
 * command ignores the variable, which may also have paths of other strategies. */
static void put_stats(FILE *out, const strata_arguments_t *arguments, const strata_candidates_t *candidates, size_t candidate,
                      bool reserved) {
    const strata_figure_options_t *set = &candidates->all[candidate].options;
    const char *environment = getenv("STRATA_SET");
    char text[64];
    fputs(environment && *environment ? "env -u STRATA_SET strata stats" : "strata stats", out);
    if (arguments->device) put_option(out, "--device", arguments->device);
    if (arguments->capacity) {
        strata_print_size(arguments->capacity, text, sizeof text);
        put_option(out, "--capacity", text);
    }
    if (arguments->lag_ns != STRATA_ARGUMENT_LAG_NS) {
        strata_print_time(arguments->lag_ns, text, sizeof text);
        put_option(out, "--gpu-lag", text);
    }
    if (arguments->host_jitter) {
        snprintf(text, sizeof text, "%llu", (unsigned long long)arguments->host_jitter);
        put_option(out, "--host-jitter", text);
    }
    if (arguments->legacy_default) put_option(out, "--legacy-default-stream", NULL);
    if (arguments->allow_code) put_option(out, "--allow-code", NULL);
    put_option(out, "--strategy", candidates->given[candidate]);
    for (size_t i = 0; i < set->count; i++) put_option(out, "--set", set->set[i]);
    if (!reserved) put_option(out, "--at", "end"); /* without reserved memory, stats finds no peak */
}

static strata_status_t next_line(const strata_arguments_t *arguments, const strata_candidates_t *candidates, const char *trace,
                                 size_t candidate, bool reserved, char **line) {
    strata_host_text_t text;
    strata_status_t status = strata_host_text_begin(&text);
    if (status != STRATA_OK) return status;
    put_stats(text.out, arguments, candidates, candidate, reserved);
    if (*trace == '-') strata_shell_word(text.out, "--");
    strata_shell_word(text.out, trace);
    return strata_host_text_end(&text, line);
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------------- */

static strata_status_t make_verdict(const strata_arguments_t *arguments, const strata_candidates_t *candidates,
                                    const strata_trace_t *trace, const strata_run_result_t *results, size_t index,
                                    strata_findings_t *findings) {
    size_t count = findings->candidates;
    size_t *stands_for = findings->stands_for + index * count;
    strata_verdict_t *verdict = &findings->verdicts[index];
    const char *path = strata_arguments_trace(arguments, index);
    strata_status_t status = strata_candidates_same(candidates->all, count, trace, stands_for);
    if (status != STRATA_OK) return status;
    const strata_verdict_subject_t subject = {
        .trace = trace, .results = results, .candidates = candidates->all, .stands_for = stands_for, .count = count};
    strata_verdict_make(&subject, verdict);
    if (!verdict->requests || strata_file_is_regular(path) != STRATA_OK) return STRATA_OK;
    size_t best = verdict->order[0];
    return next_line(arguments, candidates, path, best, results[best].peak_row > 0, &findings->next[index]);
}

strata_status_t strata_findings_make(const strata_arguments_t *arguments, const strata_candidates_t *candidates,
                                     strata_trace_t *const *traces, const strata_run_result_t *results,
                                     strata_findings_t *findings) {
    size_t count = findings->candidates, runs = count * findings->traces;
    findings->stands_for = strata_host_new(runs + 1, sizeof *findings->stands_for);
    findings->verdicts = strata_host_new(findings->traces + 1, sizeof *findings->verdicts);
    findings->next = strata_host_new(findings->traces + 1, sizeof *findings->next);
    strata_status_t status = findings->stands_for && findings->verdicts && findings->next ? STRATA_OK : STRATA_E_HOST_MEMORY;
    for (size_t i = 0; i < findings->traces && status == STRATA_OK; i++)
        status = make_verdict(arguments, candidates, traces[i], results + i * count, i, findings);
    return status;
}

/* ---- provenance --------------------------------------------------------------------------------------- */

static strata_status_t describe_strategy(const strata_candidate_t *candidate, const char *given,
                                         strata_provenance_strategy_t *strategy) {
    strata_host_text_t text;
    *strategy = (strata_provenance_strategy_t){.label = candidate->label, .given = given};
    strata_status_t status = strata_host_text_begin(&text);
    if (status != STRATA_OK) return status;
    (void)strata_config_text(candidate->strategy, text.out); /* the end of the text reports a failed write */
    status = strata_host_text_end(&text, &strategy->text);
    if (status != STRATA_OK) return status;
    strata_sha256_t hash;
    strata_sha256_begin(&hash);
    strata_sha256_add(&hash, strategy->text, text.length);
    strata_sha256_finish(&hash, strategy->sha256);
    return STRATA_OK;
}

/* A pipe, or a file that is no longer readable, has no hash. */
static void describe_trace(const strata_arguments_t *arguments, size_t index, const char *name, strata_provenance_trace_t *trace) {
    char bytes[1 << 16];
    int file;
    ssize_t count;
    strata_sha256_t hash;
    *trace = (strata_provenance_trace_t){.name = name, .path = strata_arguments_trace(arguments, index)};
    if (strata_file_open(trace->path, STRATA_FILE_NAMED_BY_FILE, &file) != STRATA_OK) return;
    strata_sha256_begin(&hash);
    while ((count = read(file, bytes, sizeof bytes)) > 0) strata_sha256_add(&hash, bytes, (size_t)count);
    if (count == 0) strata_sha256_finish(&hash, trace->sha256);
    close(file);
}

strata_status_t strata_findings_add_provenance(const strata_arguments_t *arguments, const strata_candidates_t *candidates,
                                               const char *command, strata_findings_t *findings) {
    strata_provenance_t *provenance = strata_host_new(1, sizeof *provenance);
    findings->provenance = provenance;
    if (!provenance) return STRATA_E_HOST_MEMORY;
    *provenance = (strata_provenance_t){.command = command,
                                        .device = arguments->device,
                                        .capacity = arguments->capacity,
                                        .seed = arguments->host_jitter,
                                        .strategies = strata_host_new(candidates->count + 1, sizeof *provenance->strategies),
                                        .traces = strata_host_new(findings->traces + 1, sizeof *provenance->traces)};
    if (!provenance->strategies || !provenance->traces) return STRATA_E_HOST_MEMORY;
    strata_status_t status = STRATA_OK;
    for (; provenance->strategy_count < candidates->count && status == STRATA_OK; provenance->strategy_count++) {
        size_t i = provenance->strategy_count;
        status = describe_strategy(&candidates->all[i], candidates->given[i], &provenance->strategies[i]);
    }
    for (; provenance->trace_count < findings->traces; provenance->trace_count++) {
        size_t i = provenance->trace_count;
        describe_trace(arguments, i, findings->runs[i * findings->candidates].trace, &provenance->traces[i]);
    }
    return status;
}

static void end_provenance(strata_provenance_t *provenance) {
    if (!provenance) return;
    for (size_t i = 0; i < provenance->strategy_count; i++) strata_host_delete(provenance->strategies[i].text);
    strata_host_delete(provenance->strategies);
    strata_host_delete(provenance->traces);
    strata_host_delete(provenance);
}

void strata_findings_end(strata_findings_t *findings) {
    for (size_t i = 0; i < findings->traces && findings->next; i++) strata_host_delete(findings->next[i]);
    strata_host_delete(findings->next);
    strata_host_delete(findings->verdicts);
    strata_host_delete(findings->stands_for);
    end_provenance(findings->provenance);
    *findings = (strata_findings_t){.runs = NULL};
}
