// The one bridge between the tests in C and GoogleTest.
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

namespace {

struct Case {
    std::string suite, name;
    const char *file;
    int line;
    std::function<void()> run;
};

std::vector<Case> &cases() {
    static std::vector<Case> all;
    return all;
}

class CCase : public testing::Test {
  public:
    explicit CCase(std::function<void()> run) : run_(std::move(run)) {}
    void TestBody() override { run_(); }

  private:
    std::function<void()> run_;
};

} // namespace

extern "C" {

void strata_test_register(const char *suite, const char *name, const char *file, int line, void (*run)()) {
    cases().push_back({suite, name, file, line, run});
}

void strata_test_register_of(const char *suite, const char *name, const char *file, int line, void (*run)(const void *),
                             const void *subject) {
    cases().push_back({suite, name, file, line, [run, subject] { run(subject); }});
}

void strata_test_register_row(const char *suite, const char *name, const char *row, const char *file, int line,
                              void (*run)(const void *), const void *subject) {
    cases().push_back({suite, std::string(name) + "/" + row, file, line, [run, subject] { run(subject); }});
}

void strata_test_failed(const char *file, int line, const char *format, ...) {
    char text[8192];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    ADD_FAILURE_AT(file, line) << text;
}

void strata_test_skipped(const char *file, int line, const char *why) {
    [&] { GTEST_SKIP_(why) << " (" << file << ":" << line << ")"; }();
}

bool strata_test_has_failed() { return testing::Test::HasFailure(); }
}

int main(int argc, char **argv) {
    testing::InitGoogleTest(&argc, argv);
    for (const Case &c : cases())
        testing::RegisterTest(c.suite.c_str(), c.name.c_str(), nullptr, nullptr, c.file, c.line,
                              [run = c.run]() -> testing::Test * { return new CCase(run); });
    return RUN_ALL_TESTS();
}
