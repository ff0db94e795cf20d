#include "lab/tools/screen/terminal.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDEST = 1000 };

size_t strata_terminal_width(size_t otherwise) {
    const char *columns = getenv("COLUMNS");
    char *end = NULL;
    unsigned long said = columns && *columns >= '0' && *columns <= '9' ? strtoul(columns, &end, 10) : 0;
    struct winsize size = {0};
    if (said == 0 || *end) said = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
    if (said == 0) return otherwise;
    return said < WIDEST ? said : WIDEST;
}
