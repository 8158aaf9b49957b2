#!/usr/bin/env bash
# The demo: ask one bundled trace which kernel ran, and say in words what the exit status means. If the trace after the
# fix lies beside it, the story goes on: what to change, and the answer afterwards.
# Usage: BIN=.venv/bin tools/demo.sh TRACE
set -uo pipefail
trace=$1
after=${trace/math-ran/flash-ran}

# What a note says first must be read before its figures: whether the sample was recorded or authored.
first_words() {
    local note=${1%%.json*}.md
    [[ -f $note ]] && sed -n '/^\*\*/{s/\*\*//gp;q}' "$note"
}

# Long results are cut where the story does not need them; "..." stands for what is left out.
story() {
    sed -E -e "/^($1)/,\$c\\..."
}

check() {
    printf '%s\n' "" "\$ traceview check-dispatch $1" ""
    "$BIN/traceview" check-dispatch "$1" | story "Why the slow calls|Other device work"
    status=${PIPESTATUS[0]}
    echo
    case $status in
        # In words, because a bare status is what a CI log shows and what people stumble over.
        0) echo "Exit status 0: every expectation holds. In CI this passes." ;;
        1) echo "Exit status 1: the trace proves that an expectation does not hold. In CI this fails the build."
           echo "Without the check, the program would only have been slower." ;;
        3) echo "Exit status 3: the trace does not hold what is needed to judge. In CI this fails too, unless"
           echo "you allow it." ;;
        *) echo "The demo could not run (exit status $status); the line above says why." >&2
           exit "$status" ;;
    esac
}

stages() {
    printf '%s\n' "" "\$ traceview stages $1" ""
    "$BIN/traceview" stages "$1" | sed -n -e '/^Stages/,/^  Unattributed/p'
}

printf '%s\n' "A flag is a request, not a guarantee. The trace shows what ran." "" "== What ran?" ""
first_words "$trace"
check "$trace"

if [[ $after != "$trace" && -f $after ]]; then
    printf '%s\n' "" "== Why, and what is to change?" "" "\$ traceview explain $trace" ""
    "$BIN/traceview" explain "$trace" | story "  source"
    printf '%s\n' "" "== And after the change?" ""
    first_words "$after"
    check "$after"
    printf '%s\n' "" "== What was it worth?"
    stages "$trace"
    stages "$after"
fi

printf '%s\n' "" "Next:" \
    "  $BIN/traceview check-dispatch YOUR_TRACE.json.gz   the same question for your own trace" \
    "  $BIN/traceview samples                             more traces to try, each with a note on how it was made" \
    "  $BIN/traceview --help                              all commands"
